package dev.tutti.cli.trace;

import dev.tutti.runtime.record.JsonWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The operations of all ranks on one timeline: for trace viewers, and as a web page. */
final class TimeLine {
  private static final String PAGE =
      """
      <!DOCTYPE html>
      <html lang="en"><meta charset="utf-8"><title>tutti trace</title>
      <style>
      body{font:14px sans-serif;margin:1em}pre{background:#f4f4f4;padding:1em;overflow:auto}
      canvas{border:1px solid #ccc;width:100%}#tip{height:1.5em;color:#333}
      </style>
      <h1>Collectives of all ranks</h1>
      <pre id="report"></pre>
      <p>Scroll to zoom, drag to move; one row per rank. <span id="tip"></span></p>
      <canvas id="line" height="400"></canvas>
      <script type="application/json" id="data">@DATA@</script>
      <script>
      const data=JSON.parse(document.getElementById('data').textContent);
      document.getElementById('report').textContent=data.report;
      const c=document.getElementById('line'),x=c.getContext('2d'),tip=document.getElementById('tip');
      const row=26,left=70;let from=0,to=Math.max(1,data.end);
      function color(n){let h=0;for(const k of n)h=(h*31+k.charCodeAt(0))%360;return `hsl(${h},60%,60%)`}
      function draw(){
        c.width=c.clientWidth;c.height=data.ranks.length*row+30;x.clearRect(0,0,c.width,c.height);
        const scale=(c.width-left)/(to-from);x.font='12px sans-serif';
        data.events.forEach(e=>{
          const a=left+(e.ts-from)*scale,w=Math.max(1,e.dur*scale);
          if(a+w<left||a>c.width)return;
          x.fillStyle=color(e.name);x.fillRect(Math.max(left,a),e.row*row+4,w,row-8);});
        x.fillStyle='#000';
        data.ranks.forEach((r,i)=>x.fillText('rank '+r,4,i*row+17));
        for(let i=0;i<=8;i++){const t=from+(to-from)*i/8;
          x.fillText((t/1000).toFixed(3)+' ms',left+(t-from)*scale-(i==8?70:0),c.height-8)}
      }
      function at(p){return from+(p-left)*(to-from)/(c.width-left)}
      c.onwheel=e=>{e.preventDefault();const m=at(e.offsetX),k=e.deltaY>0?1.25:0.8;
        from=m-(m-from)*k;to=m+(to-m)*k;draw()};
      let down=null;c.onmousedown=e=>down=e.offsetX;window.onmouseup=()=>down=null;
      c.onmousemove=e=>{
        if(down!==null){const d=at(down)-at(e.offsetX);from+=d;to+=d;down=e.offsetX;draw();return}
        const t=at(e.offsetX),r=Math.floor(e.offsetY/row),g=(to-from)/(c.width-left)*2;
        const hit=data.events.find(v=>v.row===r&&t>=v.ts-g&&t<=v.ts+v.dur+g);
        tip.textContent=hit?`${hit.text}: ${(hit.dur/1000).toFixed(3)} ms`:''};
      window.onresize=draw;draw();
      </script></html>
      """;

  private final RankTrace trace;
  private final TraceAnalysis analysis;
  private final long originNanos;

  TimeLine(RankTrace trace, TraceAnalysis analysis) {
    this.trace = trace;
    this.analysis = analysis;
    long origin = Long.MAX_VALUE;
    for (List<TraceEntry> entries : trace.entries().values()) {
      for (TraceEntry entry : entries) {
        origin = Math.min(origin, aligned(entry));
      }
    }
    this.originNanos = origin;
  }

  private long aligned(TraceEntry entry) {
    return aligned(entry.rank(), entry.startNanos());
  }

  private long aligned(int rank, long nanos) {
    return nanos + analysis.clockOffsets.getOrDefault(rank, 0L);
  }

  private double micros(TraceEntry entry) {
    return (aligned(entry) - originNanos) / 1e3;
  }

  private double micros(Pause pause) {
    return (aligned(pause.rank(), pause.startNanos()) - originNanos) / 1e3;
  }

  /**
   * Writes trace events in the format of Perfetto and browsers, with a process per rank and a row
   * per group.
   */
  String toPerfetto() {
    List<Object> events = new ArrayList<>();
    trace
        .entries()
        .forEach(
            (rank, entries) -> {
              events.add(named("process_name", rank, 0, "rank " + rank));
              for (String group : trace.groups().keySet()) {
                long row = row(group, false);
                events.add(named("thread_name", rank, row, "group " + group + " collectives"));
                events.add(named("thread_name", rank, row + 1, "group " + group + " messages"));
              }
              events.add(named("thread_name", rank, pauseRow(), "pauses"));
              for (TraceEntry entry : entries) {
                Map<String, Object> event = new LinkedHashMap<>();
                event.put("ph", "X");
                event.put("name", entry.type().label());
                event.put("cat", entry.isMessage() ? "message" : "collective");
                event.put("pid", (long) rank);
                event.put("tid", row(entry.group(), entry.isMessage()));
                event.put("ts", micros(entry));
                event.put("dur", entry.nanos() / 1e3);
                Map<String, Object> details = new LinkedHashMap<>();
                details.put("group", entry.group());
                details.put("sequence", entry.sequence());
                details.put("elements", entry.elements());
                details.put("dtype", entry.dtype());
                details.put("path", entry.path());
                details.put("state", entry.state());
                event.put("args", details);
                events.add(event);
              }
            });
    for (Pause pause : trace.pauses()) {
      Map<String, Object> event = new LinkedHashMap<>();
      event.put("ph", "X");
      event.put("name", pause.what());
      event.put("cat", "pause");
      event.put("pid", (long) pause.rank());
      event.put("tid", pauseRow());
      event.put("ts", micros(pause));
      event.put("dur", pause.nanos() / 1e3);
      events.add(event);
    }
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("displayTimeUnit", "ns");
    all.put("traceEvents", events);
    return JsonWriter.write(all);
  }

  private long row(String group, boolean isMessage) {
    return 2L * trace.groups().headMap(group).size() + (isMessage ? 1 : 0);
  }

  private long pauseRow() {
    return 2L * trace.groups().size();
  }

  private static Map<String, Object> named(String what, int rank, long row, String name) {
    return Map.of(
        "ph", "M", "name", what, "pid", (long) rank, "tid", row, "args", Map.of("name", name));
  }

  /**
   * Writes a single self-contained page.
   *
   * @param report the report in words
   */
  String toHtml(String report) {
    List<Object> events = new ArrayList<>();
    double end = 0;
    int row = 0;
    for (List<TraceEntry> entries : trace.entries().values()) {
      for (TraceEntry entry : entries) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("row", (long) row);
        event.put("ts", micros(entry));
        event.put("dur", entry.nanos() / 1e3);
        event.put("name", entry.type().label());
        event.put("text", "rank " + entry.rank() + " " + entry.describe() + " " + entry.path());
        events.add(event);
        end = Math.max(end, micros(entry) + entry.nanos() / 1e3);
      }
      row++;
    }
    List<Integer> ranks = List.copyOf(trace.entries().keySet());
    for (Pause pause : trace.pauses()) {
      Map<String, Object> event = new LinkedHashMap<>();
      event.put("row", (long) ranks.indexOf(pause.rank()));
      event.put("ts", micros(pause));
      event.put("dur", pause.nanos() / 1e3);
      event.put("name", "pause");
      event.put("text", "rank " + pause.rank() + " " + pause.what());
      events.add(event);
    }
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("report", report);
    data.put("ranks", trace.entries().keySet().stream().map(rank -> (Object) rank).toList());
    data.put("end", end);
    data.put("events", events);
    // No text of a record may end the element that holds the data.
    return PAGE.replace("@DATA@", JsonWriter.write(data).replace("<", "\\u003c"));
  }
}
