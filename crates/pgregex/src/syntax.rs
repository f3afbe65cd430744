//! Reads a pattern into its tree, by recursive descent over its characters.

use std::sync::Arc;

use crate::ast::{Assertion, BackReference, Bounds, Direction, Look, Node, Pattern, Polarity, Repeat};
use crate::bracket::{self, Backslash};
use crate::classes::{self, Class};
use crate::cursor::{Cursor, Parsed};
use crate::error::{Error, ErrorKind};
use crate::escape::{self, Escape};
use crate::flavor::{self, Flavor, Head};

/// How often something can be repeated at most.
const COUNT_MAX: u32 = 255;

/// How deep groups may be nested, so that walks over the tree are safe on any stack.
const DEPTH_MAX: usize = 250;

/// Parses a pattern, including what its start says about flavour and options.
pub(crate) fn parse(pattern: &str, case_insensitive: bool) -> Result<Pattern, Error> {
    let characters: Vec<char> = pattern.chars().collect();
    read(&characters, case_insensitive).map_err(|(kind, place)| Error::at(kind, &characters, place))
}

fn read(pattern: &[char], case_insensitive: bool) -> Parsed<Pattern> {
    let head = flavor::head(pattern, case_insensitive)?;
    let mut parser = Parser {
        cursor: Cursor::new(pattern, head.length),
        head,
        depth: 0,
        look_depth: 0,
        groups: Vec::new(),
        pattern: Pattern {
            root: Node::Empty,
            case_insensitive: head.case_insensitive,
            referenced: Vec::new(),
            has_look_around: false,
            has_word_boundary: false,
        },
    };
    let root = if head.flavor == Flavor::Literal {
        sequence(parser.cursor.rest().iter().map(|character| parser.one(*character)).collect())
    } else {
        parser.alternation()?
    };
    if head.flavor != Flavor::Literal && parser.cursor.peek().is_some() {
        return Err((ErrorKind::Parentheses, parser.cursor.place));
    }
    Ok(Pattern { root, ..parser.pattern })
}

struct Parser<'p> {
    cursor: Cursor<'p>,
    head: Head,
    /// How many groups and look-arounds are open.
    depth: usize,
    look_depth: usize,
    /// What each capturing group holds, by its number less one; none while it is open.
    groups: Vec<Option<Arc<Node>>>,
    pattern: Pattern,
}

impl Parser<'_> {
    fn alternation(&mut self) -> Parsed<Node> {
        let mut branches = vec![self.branch()?];
        while self.head.flavor != Flavor::Basic && self.cursor.eat("|") {
            branches.push(self.branch()?);
        }
        Ok(if branches.len() == 1 { branches.swap_remove(0) } else { Node::Alternate(branches) })
    }

    fn branch(&mut self) -> Parsed<Node> {
        let mut parts = Vec::new();
        if self.head.flavor == Flavor::Basic {
            self.basic_start(&mut parts)?;
        }
        loop {
            self.skip();
            if self.is_at_branch_end() {
                return Ok(sequence(parts));
            }
            if self.is_at_quantifier() {
                return Err((ErrorKind::QuantifierOperand, self.cursor.place));
            }
            let atom = self.atom()?;
            parts.push(self.quantified(atom)?);
        }
    }

    /// Reads what has a meaning of its own at the start: `^` is an anchor only there, and `*` then a character.
    fn basic_start(&mut self, parts: &mut Vec<Node>) -> Parsed<()> {
        self.skip();
        if self.cursor.eat("^") {
            parts.push(Node::Assert(Assertion::LineStart));
            self.skip();
        }
        if self.cursor.eat("*") {
            let star = self.one('*');
            parts.push(self.quantified(star)?);
        }
        Ok(())
    }

    fn is_at_branch_end(&self) -> bool {
        match self.head.flavor {
            _ if self.cursor.peek().is_none() => true,
            Flavor::Basic => self.cursor.is_at(r"\)"),
            Flavor::Extended if self.depth == 0 => self.cursor.is_at("|"),
            _ => self.cursor.is_at("|") || self.cursor.is_at(")"),
        }
    }

    /// Passes over comments, and over white space where the pattern is expanded.
    fn skip(&mut self) {
        loop {
            self.skip_blank();
            if self.head.flavor != Flavor::Advanced || !self.cursor.eat("(?#") {
                return;
            }
            self.cursor.skip_past(')');
        }
    }

    fn skip_blank(&mut self) {
        if !self.head.expanded {
            return;
        }
        loop {
            if self.cursor.eat("#") {
                self.cursor.skip_past('\n');
            } else if self.cursor.peek().is_some_and(|character| Class::Space.contains(character.into())) {
                self.cursor.place += 1;
            } else {
                return;
            }
        }
    }

    fn atom(&mut self) -> Parsed<Node> {
        if self.cursor.eat("[[:<:]]") {
            return Ok(self.assertion(Assertion::WordStart));
        }
        if self.cursor.eat("[[:>:]]") {
            return Ok(self.assertion(Assertion::WordEnd));
        }
        let start = self.cursor.place;
        let is_basic = self.head.flavor == Flavor::Basic;
        match self.cursor.take() {
            Some('[') => {
                self.cursor.place = start;
                let backslash = match self.head.flavor {
                    Flavor::Advanced => Backslash::Escapes { groups_opened: self.groups.len() },
                    _ => Backslash::Literal,
                };
                let rules = bracket::Rules { backslash, case_insensitive: self.head.case_insensitive };
                Ok(Node::Set(Arc::new(bracket::read(&mut self.cursor, rules)?)))
            }
            Some('\\') => {
                self.cursor.place = start;
                self.backslash()
            }
            Some('.') => Ok(Node::Set(Arc::new(classes::any()))),
            Some('(') if !is_basic => self.group(),
            Some('^') if !is_basic => Ok(self.assertion(Assertion::LineStart)),
            Some('$') if self.is_anchor() => Ok(self.assertion(Assertion::LineEnd)),
            Some(character) => Ok(self.one(character)),
            None => Ok(Node::Empty),
        }
    }

    /// Tells whether the `$` just read is one that ends a line: in the basic flavour it has to end its branch.
    fn is_anchor(&mut self) -> bool {
        if self.head.flavor != Flavor::Basic {
            return true;
        }
        self.skip();
        self.is_at_branch_end()
    }

    fn one(&self, character: char) -> Node {
        Node::Set(Arc::new(classes::one(character.into(), self.head.case_insensitive)))
    }

    fn assertion(&mut self, assertion: Assertion) -> Node {
        self.pattern.has_word_boundary |= !matches!(assertion, Assertion::LineStart | Assertion::LineEnd);
        Node::Assert(assertion)
    }

    fn backslash(&mut self) -> Parsed<Node> {
        let start = self.cursor.place;
        if self.head.flavor == Flavor::Advanced {
            return self.escape();
        }
        self.cursor.place += 1;
        let character = self.cursor.take().ok_or((ErrorKind::Escape, start))?;
        if self.head.flavor == Flavor::Extended {
            return Ok(self.one(character));
        }
        match character {
            '(' => self.group(),
            '<' => Ok(self.assertion(Assertion::WordStart)),
            '>' => Ok(self.assertion(Assertion::WordEnd)),
            '1'..='9' => self.back_reference(character.to_digit(10).unwrap_or_default() as usize, start),
            _ => Ok(self.one(character)),
        }
    }

    fn escape(&mut self) -> Parsed<Node> {
        let start = self.cursor.place;
        let case_insensitive = self.head.case_insensitive;
        Ok(match escape::read(&mut self.cursor, self.groups.len())? {
            Escape::Character(code) => Node::Set(Arc::new(classes::one(code, case_insensitive))),
            Escape::Class(class) => Node::Set(Arc::new(class.set(case_insensitive))),
            Escape::NotClass(class) => {
                let mut set = class.set(case_insensitive);
                set.negate();
                Node::Set(Arc::new(set))
            }
            Escape::Assertion(assertion) => self.assertion(assertion),
            Escape::BackReference(group) => return self.back_reference(group, start),
        })
    }

    fn back_reference(&mut self, group: usize, start: usize) -> Parsed<Node> {
        let held = group.checked_sub(1).and_then(|index| self.groups.get(index)).and_then(Option::as_ref);
        match held {
            Some(node) if self.look_depth == 0 => {
                self.pattern.referenced.resize(self.pattern.referenced.len().max(group + 1), false);
                self.pattern.referenced[group] = true;
                Ok(Node::BackReference(BackReference { group, node: Arc::clone(node) }))
            }
            _ => Err((ErrorKind::BackReference, start)),
        }
    }

    /// Reads a group or look-around, whose opening parenthesis has just been read.
    fn group(&mut self) -> Parsed<Node> {
        if self.head.flavor == Flavor::Advanced {
            for (sign, direction, polarity) in [
                ("?=", Direction::Ahead, Polarity::Positive),
                ("?!", Direction::Ahead, Polarity::Negative),
                ("?<=", Direction::Behind, Polarity::Positive),
                ("?<!", Direction::Behind, Polarity::Negative),
            ] {
                if self.cursor.eat(sign) {
                    return self.look(direction, polarity);
                }
            }
            if self.cursor.eat("?:") {
                return Ok(Node::Group(None, Arc::new(self.parenthesised()?)));
            }
        }
        if self.look_depth > 0 {
            return Ok(Node::Group(None, Arc::new(self.parenthesised()?)));
        }
        self.groups.push(None);
        let number = self.groups.len();
        let node = Arc::new(self.parenthesised()?);
        self.groups[number - 1] = Some(Arc::clone(&node));
        Ok(Node::Group(Some(number), node))
    }

    fn look(&mut self, direction: Direction, polarity: Polarity) -> Parsed<Node> {
        self.pattern.has_look_around = true;
        self.look_depth += 1;
        let node = Arc::new(self.parenthesised()?);
        self.look_depth -= 1;
        Ok(Node::Look(Look { direction, polarity, node }))
    }

    /// Reads what stands in parentheses, and the closing one.
    fn parenthesised(&mut self) -> Parsed<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err((ErrorKind::TooComplex, self.cursor.place));
        }
        let node = self.alternation()?;
        self.depth -= 1;
        if self.cursor.eat(if self.head.flavor == Flavor::Basic { r"\)" } else { ")" }) {
            Ok(node)
        } else {
            Err((ErrorKind::Parentheses, self.cursor.place))
        }
    }

    fn is_at_quantifier(&mut self) -> bool {
        match self.cursor.peek() {
            Some('*') => true,
            _ if self.head.flavor == Flavor::Basic => self.cursor.is_at(r"\{"),
            Some('+' | '?') => true,
            Some('{') => self.is_at_bounds(),
            _ => false,
        }
    }

    /// Tells whether a digit follows on the brace here; without one it is a character like any other.
    fn is_at_bounds(&mut self) -> bool {
        let start = self.cursor.place;
        self.cursor.place += 1;
        self.skip_blank();
        let found = self.cursor.peek().is_some_and(|character| character.is_ascii_digit());
        self.cursor.place = start;
        found
    }

    /// Adds the quantifier that follows on an atom, if there is one; conditions cannot have any.
    fn quantified(&mut self, atom: Node) -> Parsed<Node> {
        if matches!(atom, Node::Assert(_) | Node::Look(_)) {
            return Ok(atom);
        }
        self.skip();
        if !self.is_at_quantifier() {
            return Ok(atom);
        }
        let bounds = match self.cursor.take() {
            Some('*') => Bounds { min: 0, max: None },
            Some('+') => Bounds { min: 1, max: None },
            Some('?') => Bounds { min: 0, max: Some(1) },
            _ => self.bounds()?,
        };
        // Which match would be preferred makes no difference to whether there is one.
        if self.head.flavor == Flavor::Advanced {
            self.cursor.eat("?");
        }
        Ok(Node::Repeat(Repeat { node: Arc::new(atom), bounds }))
    }

    /// Reads `m}`, `m,}` or `m,n}`, of the basic flavour with the brace that `\` announced.
    fn bounds(&mut self) -> Parsed<Bounds> {
        let end = if self.head.flavor == Flavor::Basic { r"\}" } else { "}" };
        self.cursor.eat("{");
        // Only in the basic flavour can the first number be missing.
        let min = self.count().unwrap_or(0);
        let max = if self.cursor.eat(",") { self.count() } else { Some(min) };
        let place = self.cursor.place;
        if self.cursor.peek().is_none() {
            return Err((ErrorKind::Braces, place));
        }
        let in_order = min <= COUNT_MAX && max.is_none_or(|max| (min..=COUNT_MAX).contains(&max));
        if in_order && self.cursor.eat(end) {
            Ok(Bounds { min, max })
        } else {
            Err((ErrorKind::RepetitionCount, place))
        }
    }

    /// Reads a number, up to the digit that makes it too large.
    fn count(&mut self) -> Option<u32> {
        let mut count = None;
        loop {
            self.skip_blank();
            if count.is_some_and(|count| count > COUNT_MAX) {
                return count;
            }
            match self.cursor.digit(10) {
                Some(digit) => count = Some(count.unwrap_or(0) * 10 + digit),
                None => return count,
            }
        }
    }
}

fn sequence(mut parts: Vec<Node>) -> Node {
    match parts.len() {
        0 => Node::Empty,
        1 => parts.swap_remove(0),
        _ => Node::Concat(parts),
    }
}
