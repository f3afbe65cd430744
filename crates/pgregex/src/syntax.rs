//! Parses a pattern into its syntax tree, by recursive descent.

use std::sync::Arc;

use crate::ast::{Assertion, BackReference, Bounds, Direction, LookAround, Node, Pattern, Polarity, Repeat};
use crate::bracket::{self, Backslash};
use crate::classes::{self, Class};
use crate::cursor::{Cursor, ParseResult};
use crate::error::{Error, ErrorKind};
use crate::escape::{self, Escape};
use crate::prefix::{self, Flavor, Prefix};

/// Maximum count in a bound.
const MAX_COUNT: u32 = 255;

/// Maximum nesting of groups, so that recursion over the tree does not overflow the stack.
const MAX_DEPTH: usize = 250;

/// Parses a pattern, including the prefix that selects flavour and options.
pub(crate) fn parse(pattern: &str, case_insensitive: bool) -> Result<Pattern, Error> {
    let characters: Vec<char> = pattern.chars().collect();
    parse_characters(&characters, case_insensitive).map_err(|(kind, position)| Error::at(kind, &characters, position))
}

fn parse_characters(pattern: &[char], case_insensitive: bool) -> ParseResult<Pattern> {
    let prefix = prefix::parse(pattern, case_insensitive)?;
    let mut parser = Parser {
        cursor: Cursor::new(pattern, prefix.length),
        prefix,
        depth: 0,
        look_around_depth: 0,
        groups: Vec::new(),
        pattern: Pattern {
            root: Node::Empty,
            case_insensitive: prefix.case_insensitive,
            referenced: Vec::new(),
            has_look_around: false,
            has_word_boundary: false,
        },
    };
    let root = if prefix.flavor == Flavor::Literal {
        sequence(parser.cursor.rest().iter().map(|character| parser.character(*character)).collect())
    } else {
        parser.alternation()?
    };
    if prefix.flavor != Flavor::Literal && parser.cursor.peek().is_some() {
        return Err((ErrorKind::Parentheses, parser.cursor.position));
    }
    Ok(Pattern { root, ..parser.pattern })
}

struct Parser<'p> {
    cursor: Cursor<'p>,
    prefix: Prefix,
    /// Number of open groups and look-arounds.
    depth: usize,
    /// Number of open look-arounds.
    look_around_depth: usize,
    /// The content of each capturing group, by its number minus one; `None` while the group is open.
    groups: Vec<Option<Arc<Node>>>,
    pattern: Pattern,
}

impl Parser<'_> {
    fn alternation(&mut self) -> ParseResult<Node> {
        let mut branches = vec![self.branch()?];
        while self.prefix.flavor != Flavor::Basic && self.cursor.eat("|") {
            branches.push(self.branch()?);
        }
        Ok(if branches.len() == 1 { branches.swap_remove(0) } else { Node::Alternate(branches) })
    }

    fn branch(&mut self) -> ParseResult<Node> {
        let mut parts = Vec::new();
        if self.prefix.flavor == Flavor::Basic {
            self.basic_start(&mut parts)?;
        }
        loop {
            self.skip();
            if self.is_at_branch_end() {
                return Ok(sequence(parts));
            }
            if self.is_at_quantifier() {
                return Err((ErrorKind::QuantifierOperand, self.cursor.position));
            }
            let atom = self.atom()?;
            parts.push(self.quantified(atom)?);
        }
    }

    /// Parses what has a special meaning at the start of a branch in the basic flavour: only there `^` is an anchor and
    /// `*` an ordinary character.
    fn basic_start(&mut self, parts: &mut Vec<Node>) -> ParseResult<()> {
        self.skip();
        if self.cursor.eat("^") {
            parts.push(Node::Assert(Assertion::LineStart));
            self.skip();
        }
        if self.cursor.eat("*") {
            let star = self.character('*');
            parts.push(self.quantified(star)?);
        }
        Ok(())
    }

    fn is_at_branch_end(&self) -> bool {
        match self.prefix.flavor {
            _ if self.cursor.peek().is_none() => true,
            Flavor::Basic => self.cursor.is_at(r"\)"),
            Flavor::Extended if self.depth == 0 => self.cursor.is_at("|"),
            _ => self.cursor.is_at("|") || self.cursor.is_at(")"),
        }
    }

    /// Skips comments and, in an expanded pattern, white space.
    fn skip(&mut self) {
        loop {
            self.skip_blank();
            if self.prefix.flavor != Flavor::Advanced || !self.cursor.eat("(?#") {
                return;
            }
            self.cursor.skip_past(')');
        }
    }

    fn skip_blank(&mut self) {
        if !self.prefix.expanded {
            return;
        }
        loop {
            if self.cursor.eat("#") {
                self.cursor.skip_past('\n');
            } else if self.cursor.peek().is_some_and(|character| Class::Space.contains(character.into())) {
                self.cursor.position += 1;
            } else {
                return;
            }
        }
    }

    fn atom(&mut self) -> ParseResult<Node> {
        if self.cursor.eat("[[:<:]]") {
            return Ok(self.assertion(Assertion::WordStart));
        }
        if self.cursor.eat("[[:>:]]") {
            return Ok(self.assertion(Assertion::WordEnd));
        }
        let start = self.cursor.position;
        let is_basic = self.prefix.flavor == Flavor::Basic;
        match self.cursor.take() {
            Some('[') => {
                self.cursor.position = start;
                let backslash = match self.prefix.flavor {
                    Flavor::Advanced => Backslash::Escapes { groups_opened: self.groups.len() },
                    _ => Backslash::Literal,
                };
                let rules = bracket::Rules { backslash, case_insensitive: self.prefix.case_insensitive };
                Ok(Node::Set(Arc::new(bracket::read(&mut self.cursor, rules)?)))
            }
            Some('\\') => {
                self.cursor.position = start;
                self.backslash()
            }
            Some('.') => Ok(Node::Set(Arc::new(classes::any_character()))),
            Some('(') if !is_basic => self.group(),
            Some('^') if !is_basic => Ok(self.assertion(Assertion::LineStart)),
            Some('$') if self.is_dollar_anchor() => Ok(self.assertion(Assertion::LineEnd)),
            Some(character) => Ok(self.character(character)),
            None => Ok(Node::Empty),
        }
    }

    /// Returns whether the `$` just read is an anchor. In the basic flavour it is one only at the end of a branch.
    fn is_dollar_anchor(&mut self) -> bool {
        if self.prefix.flavor != Flavor::Basic {
            return true;
        }
        self.skip();
        self.is_at_branch_end()
    }

    fn character(&self, character: char) -> Node {
        Node::Set(Arc::new(classes::character_set(character.into(), self.prefix.case_insensitive)))
    }

    fn assertion(&mut self, assertion: Assertion) -> Node {
        self.pattern.has_word_boundary |= !matches!(assertion, Assertion::LineStart | Assertion::LineEnd);
        Node::Assert(assertion)
    }

    fn backslash(&mut self) -> ParseResult<Node> {
        let start = self.cursor.position;
        if self.prefix.flavor == Flavor::Advanced {
            return self.escape();
        }
        self.cursor.position += 1;
        let character = self.cursor.take().ok_or((ErrorKind::Escape, start))?;
        if self.prefix.flavor == Flavor::Extended {
            return Ok(self.character(character));
        }
        match character {
            '(' => self.group(),
            '<' => Ok(self.assertion(Assertion::WordStart)),
            '>' => Ok(self.assertion(Assertion::WordEnd)),
            '1'..='9' => self.back_reference(character.to_digit(10).unwrap_or_default() as usize, start),
            _ => Ok(self.character(character)),
        }
    }

    fn escape(&mut self) -> ParseResult<Node> {
        let start = self.cursor.position;
        let case_insensitive = self.prefix.case_insensitive;
        Ok(match escape::read(&mut self.cursor, self.groups.len())? {
            Escape::Character(code) => Node::Set(Arc::new(classes::character_set(code, case_insensitive))),
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

    fn back_reference(&mut self, group: usize, start: usize) -> ParseResult<Node> {
        let content = group.checked_sub(1).and_then(|index| self.groups.get(index)).and_then(Option::as_ref);
        match content {
            Some(node) if self.look_around_depth == 0 => {
                self.pattern.referenced.resize(self.pattern.referenced.len().max(group + 1), false);
                self.pattern.referenced[group] = true;
                Ok(Node::BackReference(BackReference { group, node: Arc::clone(node) }))
            }
            _ => Err((ErrorKind::BackReference, start)),
        }
    }

    /// Parses a group or look-around whose opening parenthesis has just been read.
    fn group(&mut self) -> ParseResult<Node> {
        if self.prefix.flavor == Flavor::Advanced {
            for (sign, direction, polarity) in [
                ("?=", Direction::Ahead, Polarity::Positive),
                ("?!", Direction::Ahead, Polarity::Negative),
                ("?<=", Direction::Behind, Polarity::Positive),
                ("?<!", Direction::Behind, Polarity::Negative),
            ] {
                if self.cursor.eat(sign) {
                    return self.look_around(direction, polarity);
                }
            }
            if self.cursor.eat("?:") {
                return Ok(Node::Group(None, Arc::new(self.parenthesised()?)));
            }
        }
        if self.look_around_depth > 0 {
            return Ok(Node::Group(None, Arc::new(self.parenthesised()?)));
        }
        self.groups.push(None);
        let number = self.groups.len();
        let node = Arc::new(self.parenthesised()?);
        self.groups[number - 1] = Some(Arc::clone(&node));
        Ok(Node::Group(Some(number), node))
    }

    fn look_around(&mut self, direction: Direction, polarity: Polarity) -> ParseResult<Node> {
        self.pattern.has_look_around = true;
        self.look_around_depth += 1;
        let node = Arc::new(self.parenthesised()?);
        self.look_around_depth -= 1;
        Ok(Node::LookAround(LookAround { direction, polarity, node }))
    }

    /// Parses the content of parentheses and the closing parenthesis.
    fn parenthesised(&mut self) -> ParseResult<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((ErrorKind::TooComplex, self.cursor.position));
        }
        let node = self.alternation()?;
        self.depth -= 1;
        if self.cursor.eat(if self.prefix.flavor == Flavor::Basic { r"\)" } else { ")" }) {
            Ok(node)
        } else {
            Err((ErrorKind::Parentheses, self.cursor.position))
        }
    }

    fn is_at_quantifier(&mut self) -> bool {
        match self.cursor.peek() {
            Some('*') => true,
            _ if self.prefix.flavor == Flavor::Basic => self.cursor.is_at(r"\{"),
            Some('+' | '?') => true,
            Some('{') => self.is_at_bounds(),
            _ => false,
        }
    }

    /// Returns whether a digit follows the `{` here. Without one the brace is an ordinary character.
    fn is_at_bounds(&mut self) -> bool {
        let start = self.cursor.position;
        self.cursor.position += 1;
        self.skip_blank();
        let found = self.cursor.peek().is_some_and(|character| character.is_ascii_digit());
        self.cursor.position = start;
        found
    }

    /// Applies the quantifier that follows an atom, if there is one. Assertions cannot have a quantifier.
    fn quantified(&mut self, atom: Node) -> ParseResult<Node> {
        if matches!(atom, Node::Assert(_) | Node::LookAround(_)) {
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
        // Non-greedy quantifiers prefer another match, which makes no difference to whether there is one.
        if self.prefix.flavor == Flavor::Advanced {
            self.cursor.eat("?");
        }
        Ok(Node::Repeat(Repeat { node: Arc::new(atom), bounds }))
    }

    /// Parses `m}`, `m,}` or `m,n}`. In the basic flavour only the backslash of `\{` has been read, so the brace comes
    /// first.
    fn bounds(&mut self) -> ParseResult<Bounds> {
        let end = if self.prefix.flavor == Flavor::Basic { r"\}" } else { "}" };
        self.cursor.eat("{");
        // The first number can be missing only in the basic flavour.
        let min = self.count().unwrap_or(0);
        let max = if self.cursor.eat(",") { self.count() } else { Some(min) };
        let position = self.cursor.position;
        if self.cursor.peek().is_none() {
            return Err((ErrorKind::Braces, position));
        }
        let in_order = min <= MAX_COUNT && max.is_none_or(|max| (min..=MAX_COUNT).contains(&max));
        if in_order && self.cursor.eat(end) {
            Ok(Bounds { min, max })
        } else {
            Err((ErrorKind::RepetitionCount, position))
        }
    }

    /// Reads a number; stops after the digit that makes it too large.
    fn count(&mut self) -> Option<u32> {
        let mut count = None;
        loop {
            self.skip_blank();
            if count.is_some_and(|count| count > MAX_COUNT) {
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
