/** The filters of the activity: parameters of the address, and of the list of calls. */
export const FILTERS = ['path', 'tool', 'toolset', 'outcome', 'principal', 'since', 'until'];
