//! Paths with something to remember for each, asked by what lies above or below a path.

use std::collections::HashMap;
use toolrest_core::WsPath;

/// A tree of names, so that a path is found in the time that it takes to read it, however many there are.
#[derive(Debug)]
pub(super) struct Paths<T> {
    /// The first is the root's.
    nodes: Vec<Node<T>>,
}

#[derive(Debug)]
struct Node<T> {
    value: Option<T>,
    /// The places of what is in it, by name.
    children: HashMap<Box<str>, usize>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self { value: None, children: HashMap::new() }
    }
}

impl<T> Default for Paths<T> {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl<T> Paths<T> {
    pub(super) fn insert(&mut self, path: &WsPath, value: T) {
        let mut at = 0;
        for name in names(path) {
            at = if let Some(child) = self.nodes[at].children.get(name) {
                *child
            } else {
                let child = self.nodes.len();
                self.nodes.push(Node::default());
                self.nodes[at].children.insert(name.into(), child);
                child
            };
        }
        self.nodes[at].value = Some(value);
    }

    /// What is remembered for the path itself, or for the nearest above it.
    pub(super) fn at_or_above(&self, path: &WsPath) -> Option<&T> {
        let mut node = &self.nodes[0];
        let mut nearest = node.value.as_ref();
        for name in names(path) {
            let Some(child) = node.children.get(name) else { break };
            node = &self.nodes[*child];
            nearest = node.value.as_ref().or(nearest);
        }
        nearest
    }

    pub(super) fn any_at_or_below(&self, path: &WsPath) -> bool {
        let mut node = &self.nodes[0];
        for name in names(path) {
            let Some(child) = node.children.get(name) else { return false };
            node = &self.nodes[*child];
        }
        // Names are made only on the way to something.
        node.value.is_some() || !node.children.is_empty()
    }
}

fn names(path: &WsPath) -> impl Iterator<Item = &str> {
    path.as_str().split('/').filter(|name| !name.is_empty())
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
