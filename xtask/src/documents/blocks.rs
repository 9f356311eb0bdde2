//! The blocks of code of a page, and the comments that tell how they are checked.

/// A part of a page that is checked.
#[derive(Debug, PartialEq)]
pub enum Piece<'a> {
    /// A block of code.
    Code(Block<'a>),
    /// `<!-- before: … -->`: commands that prepare the folder of the page.
    Before(&'a str),
}

impl<'a> Piece<'a> {
    /// Returns the block of code, if it is one.
    pub fn block(&self) -> Option<&Block<'a>> {
        match self {
            Self::Code(block) => Some(block),
            Self::Before(_) => None,
        }
    }
}

/// A block of code, fenced or indented by four columns.
#[derive(Debug, PartialEq)]
pub struct Block<'a> {
    /// The info string of the fence; empty for indented blocks.
    pub language: &'a str,
    /// The lines, without the indentation of the block.
    pub lines: Vec<&'a str>,
    /// The reason of `<!-- not run: … -->` above the block.
    pub not_run: Option<&'a str>,
}

impl Block<'_> {
    /// Returns the name of the file that a block shows, by its first line, `# NAME.toml`.
    pub fn file_name(&self) -> Option<&str> {
        let name = self.lines.first()?.strip_prefix("# ")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let extensions = [".toml", ".py"];
        (name.chars().all(is_name) && extensions.iter().any(|end| name.ends_with(end))).then_some(name)
    }
}

/// Returns the blocks and comments of a page in their order.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut not_run, mut after_blank) = (None, true);
    let mut rest = text;
    while !rest.is_empty() {
        let line = first_line(rest);
        if let Some(language) = line.strip_prefix("```") {
            let (body, after) = fenced(&rest[line.len()..]);
            let lines = body.lines().collect();
            pieces.push(Piece::Code(Block { language: language.trim(), lines, not_run: not_run.take() }));
            rest = after;
            continue;
        }
        if after_blank && line.starts_with("    ") {
            let end = indented_end(rest);
            let lines = rest[..end].lines().map(|line| line.get(4..).unwrap_or_default()).collect();
            pieces.push(Piece::Code(Block { language: "", lines, not_run: not_run.take() }));
            rest = &rest[end..];
            continue;
        }
        if let Some(comment) = rest.strip_prefix("<!--").and_then(|rest| rest.split_once("-->")) {
            if let Some(reason) = comment.0.trim().strip_prefix("not run:") {
                not_run = Some(reason.trim());
            } else if let Some(commands) = comment.0.trim().strip_prefix("before:") {
                pieces.push(Piece::Before(commands.trim()));
            }
            rest = comment.1;
            continue;
        }
        after_blank = line.trim().is_empty();
        if !after_blank {
            not_run = None;
        }
        rest = rest.get(line.len() + 1..).unwrap_or_default();
    }
    pieces
}

fn first_line(text: &str) -> &str {
    text.split('\n').next().unwrap_or_default()
}

/// Divides what follows an opening fence into the body and the text behind the closing one.
fn fenced(text: &str) -> (&str, &str) {
    match text.find("\n```") {
        Some(end) => {
            let after = &text[end + 1..];
            (text[..end].trim_start_matches('\n'), &after[first_line(after).len()..])
        }
        None => (text, ""),
    }
}

/// Returns where an indented block ends: at the first line that is neither indented nor blank, without blank lines before it.
fn indented_end(text: &str) -> usize {
    let (mut end, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        if line.starts_with("    ") {
            end = at;
        } else if !line.trim().is_empty() {
            break;
        }
    }
    end
}

/// Blanks out blocks of code and spans of code, so that what remains is prose of the same length in lines.
pub fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_fenced = false;
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        if !is_fence && !is_fenced && !line.starts_with("    ") {
            let is_prose = |(i, _): &(usize, &str)| i % 2 == 0;
            out.extend(line.split('`').enumerate().filter(is_prose).map(|(_, part)| part));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_their_comments() {
        let text = "a\n\n    femtile b\n\n    femtile c\n\n<!-- not run: large -->\n```toml\n# d.toml\n[mesh]\n```\n\n<!-- before:\ncp e f\n-->\n```sh\ng\n```\n";
        let block =
            |language, lines: &[&'static str], not_run| Block { language, lines: lines.to_vec(), not_run };
        let expected = [
            Piece::Code(block("", &["femtile b", "", "femtile c"], None)),
            Piece::Code(block("toml", &["# d.toml", "[mesh]"], Some("large"))),
            Piece::Before("cp e f"),
            Piece::Code(block("sh", &["g"], None)),
        ];
        assert_eq!(pieces(text), expected);
        assert_eq!(block("toml", &["# d.toml"], None).file_name(), Some("d.toml"));
        assert_eq!(block("toml", &["# what d.toml is"], None).file_name(), None);
    }

    #[test]
    fn indented_lines_of_lists_are_no_code() {
        assert_eq!(pieces("- a\n    b\n"), []);
    }

    #[test]
    fn prose_has_no_code() {
        assert_eq!(prose("a `b` c\n```\nd\n```\n    e\nf"), "a  c\n\n\n\n\nf\n");
    }
}
