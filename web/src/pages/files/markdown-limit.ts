/** Longer Markdown is shown as text only. It stands apart so that the renderer is loaded when it is needed. */
export const MAX_MARKDOWN_CHARS = 400_000;
