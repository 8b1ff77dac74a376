//! The page itself: files that are part of the program. The chart library, the style and the axes are the reports'.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use report::page::{CHART_LIBRARY, CHARTS, STYLE};

use crate::refusal::Refusal;

const HTML: &str = "text/html; charset=utf-8";
const STYLES: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Names, kinds and contents.
const ASSETS: [(&str, &str, &str); 16] = [
    ("index.html", HTML, include_str!("../assets/index.html")),
    ("report.css", STYLES, STYLE),
    ("view.css", STYLES, include_str!("../assets/view.css")),
    ("plotly.js", SCRIPT, CHART_LIBRARY),
    ("charts.js", SCRIPT, CHARTS),
    ("main.js", SCRIPT, include_str!("../assets/main.js")),
    ("elements.js", SCRIPT, include_str!("../assets/elements.js")),
    ("list.js", SCRIPT, include_str!("../assets/list.js")),
    ("run.js", SCRIPT, include_str!("../assets/run.js")),
    ("flows.js", SCRIPT, include_str!("../assets/flows.js")),
    ("plots.js", SCRIPT, include_str!("../assets/plots.js")),
    ("table.js", SCRIPT, include_str!("../assets/table.js")),
    ("why.js", SCRIPT, include_str!("../assets/why.js")),
    ("rack.js", SCRIPT, include_str!("../assets/rack.js")),
    ("group.js", SCRIPT, include_str!("../assets/group.js")),
    ("curves.js", SCRIPT, include_str!("../assets/curves.js")),
];

/// The file called `name`.
///
/// # Errors
/// When there is none.
pub fn asset(name: &str) -> Result<Response, Refusal> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    let (_, kind, text) = found.ok_or_else(|| Refusal::missing(format!("{name}: no such file")))?;
    // Another version of the program may answer at the same address tomorrow.
    Ok(([(CONTENT_TYPE, *kind), (CACHE_CONTROL, "no-cache")], *text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_no_address_and_no_file_that_it_lacks() {
        let own = |name: &&(&str, &str, &str)| !["plotly.js", "report.css"].contains(&name.0);
        for (name, _, text) in ASSETS.iter().filter(own) {
            let outside = text.replace("http://www.w3.org/", "");
            assert!(!outside.contains("http:") && !outside.contains("https:"), "{name}");
            for part in text.split("from \"./").skip(1) {
                let wanted = part.split('"').next().unwrap();
                assert!(asset(wanted).is_ok(), "{name} asks for {wanted}");
            }
        }
        let (.., page) = ASSETS[0];
        let named: Vec<_> = page.split("/assets/").skip(1).collect();
        assert_eq!(named.len(), 5, "style sheets and scripts");
        for part in named {
            assert!(asset(part.split('"').next().unwrap()).is_ok(), "{part}");
        }
        assert!(asset("absent.js").is_err());
    }
}
