//! Frames of a time-dependent run, for the view of its page.

use femtile_report::View;
use femtile_solve::SolutionData;

use crate::Case;
use crate::drawn_field::{body_of, field};

/// Fields that a film may show; the first one present is used.
const DEFAULTS: [&str; 2] = ["u", "V"];

/// Values of a field at several times, on the part of the mesh that a page shows.
#[derive(Default)]
pub(crate) struct Animation {
    content: Option<(String, View)>,
    /// Whether the field or the mesh cannot be shown.
    has_failed: bool,
}

impl Animation {
    /// Adds a frame.
    pub fn push(&mut self, case: &Case, time: f64, data: &SolutionData) {
        if self.has_failed {
            return;
        }
        let Some((label, values)) = field(case, &data.point_fields, &DEFAULTS) else {
            self.has_failed = true;
            return;
        };
        if self.content.is_none() {
            let view = body_of(data).and_then(|body| View::new(&body));
            self.has_failed = view.is_err();
            self.content = view.ok().map(|view| (label, view));
        }
        if let Some((_, view)) = &mut self.content {
            view.push(Some(time), &values);
        }
    }

    /// Returns the name of the field and its view, if there were frames.
    pub fn finish(self) -> Option<(String, View)> {
        self.content
    }
}
