// Light or dark: as the system says, unless the person chose.

type Choice = 'system' | 'light' | 'dark';

class Theme {
  choice = $state<Choice>(read());

  set(choice: Choice) {
    this.choice = choice;
    localStorage.setItem('toolrest.theme', choice);
  }
}

function read(): Choice {
  const stored = localStorage.getItem('toolrest.theme');
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export const theme = new Theme();

/** Keeps the page in the chosen theme. Call it within `$effect`. */
export function startTheme() {
  if (theme.choice === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.choice;
}
