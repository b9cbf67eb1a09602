function fill(id, rows) {
  const body = document.querySelector('#' + id + ' tbody');
  body.replaceChildren(...rows.map(row => {
    const line = document.createElement('tr');
    line.append(...row.map(text => {
      const cell = document.createElement('td');
      cell.textContent = text;
      return cell;
    }));
    return line;
  }));
}

async function show() {
  const problem = document.getElementById('problem');
  try {
    // Not a relative URL: that of a page which was opened with user and password has both.
    const answer = await fetch(location.origin + '/status');
    const status = await answer.json();
    const title = 'Rank ' + status.rank + ' of ' + status.size + ', ' + status.host + '/' + status.pid;
    document.title = title;
    document.getElementById('title').textContent = title;
    fill('groups', status.groups.map(group => {
      const first = group.pending[0];
      return [
        group.name,
        group.failure || group.state,
        group.issued,
        first ? first.operation + ' #' + first.number : '',
        first ? (first.waited_ms / 1000).toFixed(1) + ' s' : '',
        group.thread];
    }));
    fill('operations', status.flight_record.entries.slice(-20).reverse().map(entry => [
      entry.process_group[0],
      entry.op,
      entry.seq,
      entry.path,
      entry.state,
      entry.duration_ms === null ? '' : entry.duration_ms.toFixed(3)]));
    problem.textContent = '';
  } catch (error) {
    problem.textContent = 'The rank does not answer: ' + error;
  }
  setTimeout(show, 1000);
}

show();
