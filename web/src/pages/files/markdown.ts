// Makes elements from Markdown. No HTML is ever parsed: what the text cannot say in Markdown is shown as text.

import type { SyntaxNode } from '@lezer/common';
import { GFM, parser as plain } from '@lezer/markdown';

const parser = plain.configure([GFM]);

/** Deeper lists and quotes are shown as text. */
const MAX_DEPTH = 60;

/** Elements without further rules. Headings begin below the title of the page. */
const ELEMENTS: Record<string, string> = {
  Paragraph: 'p', BulletList: 'ul', OrderedList: 'ol', ListItem: 'li', Blockquote: 'blockquote', Emphasis: 'em', StrongEmphasis: 'strong',
  Strikethrough: 's', ATXHeading1: 'h2', ATXHeading2: 'h3', ATXHeading3: 'h4', ATXHeading4: 'h5', ATXHeading5: 'h6', ATXHeading6: 'h6',
  SetextHeading1: 'h2', SetextHeading2: 'h3',
};
/** Signs of Markdown itself, and definitions. */
const LEFT_OUT = new Set([
  'HeaderMark', 'EmphasisMark', 'StrikethroughMark', 'ListMark', 'QuoteMark', 'LinkMark', 'CodeMark', 'CodeInfo', 'LinkReference', 'TableDelimiter',
]);

class Renderer {
  #references = new Map<string, string>();

  constructor(
    readonly text: string,
    readonly path: string,
    readonly toFile: (path: string) => string,
  ) {}

  document(): DocumentFragment {
    const fragment = document.createDocumentFragment();
    const top = parser.parse(this.text).topNode;
    for (const reference of top.getChildren('LinkReference')) {
      const [label, url] = [reference.getChild('LinkLabel'), reference.getChild('URL')];
      if (label && url) this.#references.set(this.#of(label).slice(1, -1).toLowerCase(), this.#of(url));
    }
    for (let node = top.firstChild; node; node = node.nextSibling) this.#add(fragment, node, 0);
    return fragment;
  }

  #of(node: SyntaxNode): string {
    return this.text.slice(node.from, node.to);
  }

  #add(parent: Node, node: SyntaxNode, depth: number) {
    const name = node.name;
    if (LEFT_OUT.has(name)) return;
    if (depth > MAX_DEPTH) return void parent.appendChild(document.createTextNode(this.#of(node)));
    const element = ELEMENTS[name];
    if (element) return this.#children(append(parent, element), node, depth);
    switch (name) {
      case 'FencedCode':
      case 'CodeBlock': {
        const pre = append(parent, 'pre');
        pre.tabIndex = 0;
        const lines = node.getChildren('CodeText').map((line) => this.#of(line));
        append(pre, 'code').textContent = lines.join(name === 'CodeBlock' ? '\n' : '');
        return;
      }
      case 'InlineCode': {
        const marks = node.getChildren('CodeMark');
        const [from, to] = [marks[0]?.to ?? node.from, marks.at(-1)?.from ?? node.to];
        append(parent, 'code').textContent = this.text.slice(from, to);
        return;
      }
      case 'Link':
        return this.#link(parent, node, depth);
      case 'Image': {
        // Pictures of other places would tell them who reads the file.
        const marks = node.getChildren('LinkMark');
        const alt = this.text.slice(marks[0]?.to ?? node.from, marks[1]?.from ?? node.to);
        const url = node.getChild('URL');
        const link = this.#anchor(parent, url ? this.#of(url) : '');
        link.textContent = `picture: ${alt || (url ? this.#of(url) : '')}`;
        return;
      }
      case 'Autolink':
      case 'URL': {
        const url = name === 'URL' ? this.#of(node) : this.#of(node).slice(1, -1);
        this.#anchor(parent, url.includes(':') ? url : url.includes('@') ? `mailto:${url}` : `https://${url}`).textContent = url;
        return;
      }
      case 'HardBreak':
        return void append(parent, 'br');
      case 'HorizontalRule':
        return void append(parent, 'hr');
      case 'Escape':
        return void parent.appendChild(document.createTextNode(this.#of(node).slice(1)));
      case 'Task':
        return this.#children(parent, node, depth);
      case 'TaskMarker': {
        const isDone = /x/i.test(this.#of(node));
        parent.appendChild(document.createTextNode(isDone ? '☑ ' : '☐ '));
        return;
      }
      case 'Table':
        return this.#table(parent, node, depth);
      default:
        parent.appendChild(document.createTextNode(this.#of(node)));
    }
  }

  /** Adds the nodes below a node, with the text between them. */
  #children(parent: Node, node: SyntaxNode, depth: number, from = node.from, to = node.to) {
    let at = from;
    const isBlock = /List$|^ListItem|^Blockquote/.test(node.name);
    const gap = (until: number) => {
      if (until > at && !isBlock) parent.appendChild(document.createTextNode(this.text.slice(at, until)));
    };
    for (let child = node.firstChild; child; child = child.nextSibling) {
      if (child.from < at || child.to > to) continue;
      gap(child.from);
      this.#add(parent, child, depth + 1);
      at = child.to;
      // The blank between the signs of a heading and its text.
      if (child.name === 'HeaderMark') while (this.text[at] === ' ' && at < to) at += 1;
    }
    gap(to);
  }

  #link(parent: Node, node: SyntaxNode, depth: number) {
    const marks = node.getChildren('LinkMark');
    const [open, close] = [marks[0]?.to ?? node.from, marks[1]?.from ?? node.to];
    const label = node.getChild('LinkLabel');
    const url = node.getChild('URL');
    const name = label ? this.#of(label).slice(1, -1) : this.text.slice(open, close);
    const target = url ? this.#of(url).replace(/^<|>$/g, '') : this.#references.get((name || this.text.slice(open, close)).toLowerCase());
    if (target === undefined) return this.#children(parent, node, depth);
    this.#children(this.#anchor(parent, target), node, depth, open, close);
  }

  #anchor(parent: Node, target: string): HTMLElement {
    const address = this.#address(target);
    if (!address) return append(parent, 'span');
    const link = append(parent, 'a') as HTMLAnchorElement;
    link.href = address;
    if (!address.startsWith('/')) {
      link.target = '_blank';
      link.rel = 'noopener noreferrer';
    }
    return link;
  }

  /** The address of a link: of the web or of a file of the workspace; nothing else, such as `javascript:`. */
  #address(target: string): string | null {
    if (/^(https?|mailto):/i.test(target)) return target;
    if (/^[a-z][a-z0-9+.-]*:/i.test(target) || target.startsWith('//') || target.startsWith('#')) return null;
    const base = this.path.split('/').slice(0, -1).map(encodeURIComponent).join('/');
    try {
      const { pathname } = new URL(target, `http://files${base}/`);
      return this.toFile(decodeURIComponent(pathname));
    } catch {
      return null;
    }
  }

  #table(parent: Node, node: SyntaxNode, depth: number) {
    const table = append(parent, 'table');
    for (let row = node.firstChild; row; row = row.nextSibling) {
      if (row.name !== 'TableHeader' && row.name !== 'TableRow') continue;
      const line = append(table, 'tr');
      for (const cell of row.getChildren('TableCell')) {
        const element = append(line, row.name === 'TableHeader' ? 'th' : 'td');
        this.#children(element, cell, depth);
      }
    }
  }
}

function append(parent: Node, name: string): HTMLElement {
  return parent.appendChild(document.createElement(name));
}

/** Renders the Markdown text of a file. `toFile` returns the address of the page that shows a file. */
export function render(text: string, path: string, toFile: (path: string) => string): DocumentFragment {
  return new Renderer(text, path, toFile).document();
}
