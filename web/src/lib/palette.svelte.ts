// Whether the command palette or the list of keys is open.

class PaletteState {
  shows = $state<'nothing' | 'commands' | 'help'>('nothing');

  open(what: 'commands' | 'help') {
    this.shows = what;
  }

  close() {
    this.shows = 'nothing';
  }
}

export const palette = new PaletteState();
