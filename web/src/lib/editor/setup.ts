// CodeMirror as this console uses it. It is loaded with the first file that is shown.

import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: 'var(--syntax-keyword)' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--syntax-string)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--syntax-number)' },
  { tag: tags.comment, color: 'var(--syntax-comment)' },
  { tag: [tags.propertyName, tags.definition(tags.variableName), tags.tagName, tags.attributeName], color: 'var(--syntax-name)' },
  { tag: tags.heading, color: 'var(--syntax-keyword)', fontWeight: '600' },
  { tag: tags.strong, fontWeight: '600' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: [tags.link, tags.url], color: 'var(--syntax-name)' },
]);

const look = EditorView.theme({
  '&': { height: '100%', fontSize: '12px', color: 'var(--text)', backgroundColor: 'var(--surface)' },
  '&.cm-focused': { outline: 'none' },
  '&.cm-focused .cm-scroller': { boxShadow: 'inset 0 0 0 2px var(--accent)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-content': { caretColor: 'var(--text)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--muted)', border: 'none' },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 10px 0 12px', minWidth: '40px' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'light-dark(#0000000a, #ffffff0d)' },
  '.cm-activeLineGutter': { color: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'light-dark(#cddafa, #35477a)',
  },
  '.cm-selectionMatch': { backgroundColor: 'var(--wait-soft)' },
  '.cm-searchMatch': { backgroundColor: 'var(--wait-soft)', outline: '1px solid var(--wait)' },
  '.cm-searchMatch-selected': { backgroundColor: 'var(--accent-soft)' },
  '.cm-specialChar': { color: 'var(--wait)' },
  '.cm-panels': { backgroundColor: 'var(--bg)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-panels.cm-panels-top': { borderBottom: '1px solid var(--line)' },
  '.cm-panel.cm-search': { fontFamily: 'var(--sans)' },
  '.cm-button': { backgroundImage: 'none', background: 'var(--surface)', border: '1px solid var(--line-strong)', borderRadius: '4px', color: 'var(--text)' },
  '.cm-textfield': { border: '1px solid var(--line-strong)', borderRadius: '4px', background: 'var(--surface)' },
  '.cm-target': { backgroundColor: 'var(--wait-soft)', boxShadow: 'inset 3px 0 var(--wait)' },
  // Differences.
  '.cm-changedLine, &.cm-merge-b .cm-changedLine': { backgroundColor: 'var(--add)' },
  '&.cm-merge-a .cm-changedLine, .cm-deletedChunk': { backgroundColor: 'var(--remove)' },
  '&.cm-merge-b .cm-changedText, .cm-insertedLine .cm-changedText': { background: 'var(--add-mark)' },
  '&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText': { background: 'var(--remove-mark)' },
  '.cm-changeGutter': { width: '3px', paddingLeft: '0' },
  '&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter': { background: 'var(--bad)' },
  '&.cm-merge-b .cm-changedLineGutter': { background: 'var(--ok)' },
  '.cm-collapsedLines:before, .cm-collapsedLines:after': { content: '"⋯"' },
  '.cm-collapsedLines': { background: 'var(--bg)', color: 'var(--muted)', borderBlock: '1px solid var(--line)', padding: '2px 12px' },
});

type Languages = Record<string, () => Promise<Extension>>;
const javascript = (options: object) => async () => (await import('@codemirror/lang-javascript')).javascript(options);
const html = async () => (await import('@codemirror/lang-html')).html();
const markdown = async () => (await import('@codemirror/lang-markdown')).markdown();
const languages: Languages = {
  css: async () => (await import('@codemirror/lang-css')).css(),
  html,
  htm: html,
  svg: html,
  xml: html,
  js: javascript({}),
  mjs: javascript({}),
  cjs: javascript({}),
  jsx: javascript({ jsx: true }),
  ts: javascript({ typescript: true }),
  tsx: javascript({ typescript: true, jsx: true }),
  json: async () => (await import('@codemirror/lang-json')).json(),
  md: markdown,
  markdown,
  py: async () => (await import('@codemirror/lang-python')).python(),
  rs: async () => (await import('@codemirror/lang-rust')).rust(),
};

/** Style sheets that the editor adds need the nonce of the page. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? '';

/** Texts with a longer line have no colours: the parser would take seconds. */
const MAX_LINE_CHARS = 20_000;

export type EditorOptions = {
  label: string;
  isEditable: boolean;
  onchange?: (text: string) => void;
  onsave?: () => void;
};

/** Returns the extensions of an editor for a file of this name. */
export async function extensions(name: string, text: string, options: EditorOptions): Promise<Extension[]> {
  const ending = name.split('.').at(-1)?.toLowerCase() ?? '';
  const hasLongLine = text.length > MAX_LINE_CHARS && text.split('\n').some((line) => line.length > MAX_LINE_CHARS);
  const language = languages[ending] && !hasLongLine ? await languages[ending]() : [];
  const save = { key: 'Mod-s', preventDefault: true, run: () => (options.onsave?.(), true) };
  return [
    EditorView.cspNonce.of(nonce),
    look,
    lineNumbers(),
    highlightSpecialChars(),
    drawSelection(),
    highlightSelectionMatches(),
    search({ top: true }),
    syntaxHighlighting(colours),
    language,
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ 'aria-label': options.label }),
    options.isEditable
      ? [history(), indentOnInput(), bracketMatching(), highlightActiveLine(), highlightActiveLineGutter()]
      : EditorState.readOnly.of(true),
    // Escape, then Tab leaves the editor.
    keymap.of([save, ...defaultKeymap, ...searchKeymap, ...(options.isEditable ? [...historyKeymap, indentWithTab] : [])]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onchange?.(update.state.doc.toString());
    }),
  ];
}
