//! A map from paths to values that finds the nearest entry above a path, and whether there are entries below it.

use std::collections::HashMap;
use toolrest_core::WsPath;

/// A tree of names. A look-up takes time in proportion to the length of the path only.
#[derive(Debug)]
pub(super) struct PathTree<T> {
    /// The first node is the root.
    nodes: Vec<Node<T>>,
}

#[derive(Debug)]
struct Node<T> {
    value: Option<T>,
    /// Indexes of the child nodes, by name.
    children: HashMap<Box<str>, usize>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self { value: None, children: HashMap::new() }
    }
}

impl<T> Default for PathTree<T> {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl<T> PathTree<T> {
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

    /// Returns the value of the path itself, or of the nearest path above it that has one.
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
        // A node exists only if it, or a node below it, has a value.
        node.value.is_some() || !node.children.is_empty()
    }
}

fn names(path: &WsPath) -> impl Iterator<Item = &str> {
    path.as_str().split('/').filter(|name| !name.is_empty())
}

#[cfg(test)]
#[path = "path_tree_tests.rs"]
mod tests;
