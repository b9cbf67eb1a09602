// How the search of the site ranks sections of pages. VitePress passes functions to the browser as text, so they can
// use nothing but their arguments.

/** Splits text into words; names such as TUTTI_TIMEOUT count as a whole and in parts. */
export function tokenize(text) {
  return text
    .split(/[^\p{L}\p{N}_]+/u)
    .flatMap((word) => (word.includes('_') ? [word, ...word.split('_')] : [word]))
    .filter((word) => word !== '');
}

/**
 * Returns the options of the search. Pages about the inside of Tutti count less, and a page counts more for the words
 * that it explains: its name, its further words in the sidebar, names of operations and of settings.
 *
 * sections: those of sidebar.mjs; operations: the text of the page of operations
 */
export function options(sections, operations) {
  const pages = { '/': { weight: 0.2, words: [] } };
  for (const { text, pages: all } of sections) {
    for (const [, place, name, more = ''] of all) {
      const words = tokenize(`${name} ${more}`.toLowerCase());
      pages[`/${place}`] = { weight: text === 'Inside' || place === 'changelog' ? 0.2 : 1, words };
    }
  }
  const calls = [...operations.matchAll(/\b(?:group|mesh)\.(\w+)\(/g)].map(([, name]) => name.toLowerCase());
  pages['/operations'].words.push(...new Set(calls));
  const boostDocument = new Function(
    'id',
    'term',
    `const page = ${JSON.stringify(pages)}[id.replace(/(\\.html)?(#.*)?$/, '')];
    const isSetting = term.startsWith('tutti_') && id.startsWith('/reference/settings');
    return (page?.weight ?? 1) * (isSetting || page?.words.includes(term) ? 12 : 1);`,
  );
  // All settings begin with this word.
  const prefix = (term) => term !== 'tutti';
  return { options: { tokenize }, searchOptions: { boostDocument, prefix } };
}
