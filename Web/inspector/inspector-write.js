// Changes of the server; available if it was started with --inspector-write.
import { written } from "./inspector-json.js"
import { format, h, setText } from "./inspector-parts.js"
import { server } from "./inspector-server.js"

/** A form that calls a method of an actor, as any principal. */
export class CallForm {
    constructor(name) {
        this.name = name
        this.method = h("select", { "aria-label": "Method" })
        this.values = h("textarea", { "aria-label": "Arguments", spellcheck: "false" })
        this.principal = h("input", { placeholder: "anonymous", "aria-label": "Principal", autocomplete: "off" })
        this.answer = h("pre", { class: "answer", hidden: true })
        this.button = h("button", { class: "primary" }, "Call")
        this.element = h(
            "form", { class: "call", onsubmit: (event) => this.#call(event) },
            h("label", {}, "Method", this.method), h("label", {}, "Arguments (JSON array)", this.values),
            h("div", { class: "tools" }, h("label", { title: "Principal id, without roles and claims" }, "As", this.principal), this.button), this.answer)
        this.method.addEventListener("change", () => this.#suggest())
    }

    methods(methods) {
        if (this.known?.length === methods.length) return
        this.known = methods
        this.method.replaceChildren(...methods.map(({ method }) => h("option", { value: method }, method)))
        this.#suggest()
    }

    #suggest() {
        const found = this.known.find(({ method }) => method === this.method.value)
        const labels = /\((.*)\)/.exec(found?.method ?? "")?.[1].split(":").slice(0, -1) ?? []
        this.values.placeholder = `[${labels.map((label) => (label === "_" ? "…" : label)).join(", ")}]`
        this.values.value = found?.arguments ? "" : "[]"
    }

    async #call(event) {
        event.preventDefault()
        this.button.disabled = true
        try {
            const { result, seconds, error } = (await server.call(this.name, this.method.value, this.values.value || "[]", this.principal.value || null)).shown
            setText(this.answer, error ? `${error.code}: ${error.message}` : `${written(result, 2)}\n\nafter ${format.time(seconds)}`)
        } catch (error) {
            setText(this.answer, error.message)
        } finally {
            this.answer.hidden = false
            this.button.disabled = false
        }
    }
}
