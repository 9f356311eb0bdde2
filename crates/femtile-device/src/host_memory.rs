//! Memory of the machine, or of the control group that the process is in; on Linux.

use std::path::Path;

/// Returns the bytes of memory of the machine, or the limit of its control groups if that is less; none if
/// the system does not say.
pub fn host_memory_bytes() -> Option<u64> {
    memory_bytes_under(Path::new("/"))
}

/// [`host_memory_bytes`] with `/proc` and `/sys` below `root`.
fn memory_bytes_under(root: &Path) -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let total = read("proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:").map(str::to_owned))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    });
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits_of_group(line, &read));
    total.into_iter().chain(limits).min()
}

/// The limits of a line of `/proc/self/cgroup`, `number:controllers:path`: its group's and those of all above it.
fn limits_of_group(line: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<u64> {
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    // The second version has one line without controllers.
    let (folders, file): (&[&str], &str) = match controllers {
        "" => (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let above = Path::new(path.trim_start_matches('/')).ancestors();
    let places =
        above.flat_map(|group| folders.iter().map(move |folder| Path::new(folder).join(group).join(file)));
    // `max` is no number, and no limit.
    places.filter_map(|place| read(place.to_str()?)?.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        memory_bytes_under(root.path())
    }

    #[test]
    fn the_smallest_of_the_machine_and_all_groups_holds() {
        let machine = ("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 7 kB\n");
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[machine]), Some(1_024_000));
        let second = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(found(&[machine, second, ("sys/fs/cgroup/a/b/memory.max", "max\n")]), Some(1_024_000));
        assert_eq!(found(&[machine, second, ("sys/fs/cgroup/a/b/memory.max", "5000\n")]), Some(5000));
        assert_eq!(found(&[machine, second, ("sys/fs/cgroup/a/memory.max", "6000\n")]), Some(6000));
        assert_eq!(found(&[machine, second, ("sys/fs/cgroup/memory.max", "7000\n")]), Some(7000));
        let first = ("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/c\n0::/\n");
        let limit = |path, bytes| found(&[machine, first, (path, bytes)]);
        assert_eq!(limit("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "8000\n"), Some(8000));
        assert_eq!(limit("sys/fs/cgroup/memory/memory.limit_in_bytes", "9000\n"), Some(9000));
        assert_eq!(limit("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n"), Some(1_024_000));
        assert_eq!(
            limit("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n"),
            Some(1_024_000)
        );
    }
}
