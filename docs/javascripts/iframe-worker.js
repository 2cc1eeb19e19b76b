// Search from disk: browsers refuse a Worker of a file:// page, so its program runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source === this.inside) {
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        }
      });
      this.inside.document.open();
      this.inside.document.write("<script>postMessage = (data) => parent.postMessage(data, '*', []);</script>");
      this.inside.document.write(`<script src="${url}"></script>`);
      this.inside.document.close();
      this.ready = new Promise((resolve) => { this.inside.onload = resolve; });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
  };
}
