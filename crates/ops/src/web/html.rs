//! Parses pages within limits.
//!
//! A page of some megabytes can make a parser of HTML create billions of elements (formatting that is not closed is repeated
//! in every paragraph), or compare each of a million tags with as many open elements. Such pages are refused.

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use markup5ever_rcdom::{Handle, Node, RcDom};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::{Duration, Instant};
use toolrest_core::{ErrorKind, Result, ToolError};

/// Maximum depth of elements within each other. Deeper pages are not made by people, and what reads a tree is recursive.
const MAX_DEPTH: usize = 400;
/// Maximum number of elements of a page.
const MAX_ELEMENTS: usize = 200_000;
/// Maximum time for parsing a page.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Number of bytes after which the time is looked at.
const PART_BYTES: usize = 4 << 10;
/// Stack of the thread that reads a page, which is enough for the maximum depth.
const STACK_BYTES: usize = 32 << 20;

/// Why a page is refused. It leaves the parser, which has no way to stop, by unwinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TooMuch {
    Elements,
    Time,
    Depth,
}

/// Parses a page, and gives its tree to `read`, on a thread with a large stack.
pub(super) fn with_tree<T: Send>(page: &str, read: impl FnOnce(&Rc<Node>) -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("page".to_owned()).stack_size(STACK_BYTES);
        let work = || read(&parse(page));
        let started = thread.spawn_scoped(scope, work).map_err(ToolError::internal)?;
        started.join().unwrap_or_else(|reason| match reason.downcast_ref() {
            Some(too_much) => Err(refusal(*too_much)),
            None => Err(ToolError::internal("reading a page panicked")),
        })
    })
}

fn refusal(too_much: TooMuch) -> ToolError {
    let what = match too_much {
        TooMuch::Elements => format!("it has more than {MAX_ELEMENTS} elements"),
        TooMuch::Time => format!("it cannot be parsed within {} s", MAX_TIME.as_secs()),
        TooMuch::Depth => format!("its elements are more than {MAX_DEPTH} deep within each other"),
    };
    let message = format!("The page cannot be converted: {what}. Fetch it with `web_fetch` and the format `raw`");
    ToolError::new(ErrorKind::WrongType, message)
}

/// Parses a page; unwinds with [`TooMuch`] if it exceeds a limit.
fn parse(page: &str) -> Rc<Node> {
    let started = Instant::now();
    let mut parser = parse_document(LimitedTree::default(), ParseOpts::default());
    let mut rest = page;
    while !rest.is_empty() {
        let end = (PART_BYTES..rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
        let (part, next) = rest.split_at(end);
        parser.process(StrTendril::from_slice(part));
        rest = next;
        if started.elapsed() > MAX_TIME {
            resume_unwind(Box::new(TooMuch::Time));
        }
    }
    let tree = parser.finish().document;
    if is_deeper_than(&tree, MAX_DEPTH) {
        resume_unwind(Box::new(TooMuch::Depth));
    }
    tree
}

fn is_deeper_than(tree: &Rc<Node>, limit: usize) -> bool {
    let mut open = vec![(Rc::clone(tree), 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        open.extend(node.children.borrow().iter().map(|child| (Rc::clone(child), depth + 1)));
    }
    false
}

/// A tree with a limited number of elements.
#[derive(Default)]
struct LimitedTree {
    tree: RcDom,
    elements: Cell<usize>,
}

impl TreeSink for LimitedTree {
    type Handle = Handle;
    type Output = RcDom;
    type ElemName<'a> = ExpandedName<'a>;

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.elements.set(self.elements.get() + 1);
        if self.elements.get() > MAX_ELEMENTS {
            resume_unwind(Box::new(TooMuch::Elements));
        }
        self.tree.create_element(name, attrs, flags)
    }

    fn finish(self) -> RcDom {
        self.tree
    }

    // Errors in pages are not reported, so they are not collected.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.tree.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.tree.elem_name(target)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.tree.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.tree.create_pi(target, data)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.tree.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        self.tree.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.tree.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.tree.get_template_contents(target)
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        self.tree.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Handle, node: NodeOrText<Handle>) {
        self.tree.append_before_sibling(sibling, node);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.tree.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.tree.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        self.tree.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.tree.is_mathml_annotation_xml_integration_point(target)
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod html_tests;
