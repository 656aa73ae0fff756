// States of actors: applies patches to reconstruct versions, and shows values as trees.
import { copied, isContainer, isExact, put, written } from "./inspector-json.js"
import { h, setText } from "./inspector-parts.js"

/** Returns a copy of a value with a patch (RFC 6902) applied. Throws if it does not apply. */
export function patched(value, patch) {
    let root = { value: copied(value) }
    for (const { op, path, from, value: given } of patch) {
        if (op === "test") continue
        let moved = given
        if (op === "copy" || op === "move") {
            moved = copied(at(root, from))
            if (op === "move") change(root, from, "remove")
        }
        change(root, path, op === "move" || op === "copy" ? "add" : op, copied(moved))
    }
    return root.value
}

function names(path) {
    return ["value", ...path.split("/").slice(1).map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"))]
}

function step(container, name) {
    if (!isContainer(container) || !Object.hasOwn(container, name)) throw new Error("the patch does not apply")
    return container[name]
}

function at(root, path) {
    return names(path).reduce(step, root)
}

function change(root, path, op, value) {
    const parts = names(path)
    const last = parts.pop()
    const container = parts.reduce(step, root)
    if (Array.isArray(container)) {
        const index = last === "-" ? container.length : Number(last)
        container.splice(index, op === "add" ? 0 : 1, ...(op === "remove" ? [] : [value]))
    } else if (op === "remove") delete container[last]
    else put(container, last, value)
}

/** The known versions of a state. */
export class States {
    /** Adds the versions in the view of an actor to the known states, by stream. */
    static update({ states, recorded }, known) {
        const of = (stream) => known.get(stream) ?? known.set(stream, new States()).get(stream)
        for (const { stream, version, value } of [...states, ...(recorded?.earlier ?? [])]) {
            if (version !== null && value !== null) of(stream).add(version, value)
        }
        for (const { stream } of states) of(stream).follow((recorded?.versions ?? []).filter((version) => version.stream === stream))
        return known
    }

    #values = new Map()
    static most = 400

    has(version) {
        return this.#values.has(version)
    }

    at(version) {
        return this.#values.get(version)
    }

    add(version, value) {
        if (!this.#values.has(version)) this.#values.set(version, value)
        while (this.#values.size > States.most) this.#values.delete(Math.min(...this.#values.keys()))
    }

    /** The value before a version. */
    before({ version, base, previous }) {
        const known = base ?? previous
        // Null if other versions may lie between.
        if (known !== undefined) return this.at(known)
        const last = Math.max(...[...this.#values.keys()].filter((each) => each < version))
        return this.at(last)
    }

    /** Adds versions, listed from the newest to the oldest, with their values or patches. */
    follow(versions) {
        for (const { version, base, patch, value } of versions.toReversed()) {
            if (this.has(version)) continue
            if (value !== undefined && value !== null) this.add(version, value)
            else if (patch && this.has(base)) {
                try {
                    this.add(version, patched(this.at(base), patch))
                } catch {
                    // The next whole value makes later versions known again.
                }
            }
        }
    }
}

/** Shows a value as a tree, whose nodes flash when they change. Long lists are shown in steps, on request. */
export class Tree {
    static step = 100
    static longest = 4_000

    constructor() {
        this.element = h("div", { class: "tree", role: "tree" })
    }

    /** - flashes: whether changed nodes flash; false when another version or state is selected. */
    show(value, flashes = true) {
        if (value === undefined) {
            this.root = undefined
            return this.element.replaceChildren(h("span", { class: "soft" }, "The state of this version is not recorded."))
        }
        if (!this.root) {
            this.root = new Node(null, 0)
            this.element.replaceChildren(this.root.element)
            flashes = false
        }
        this.root.update(value, flashes)
    }
}

class Node {
    constructor(key, depth) {
        this.depth = depth
        this.children = new Map()
        this.most = Tree.step
        this.fold = h("span", { class: "gap" })
        this.value = h("span", { class: "val" })
        this.row = h("div", { class: "row" }, this.fold, key === null ? null : h("span", { class: "key" }, `${key}:`), this.value)
        this.element = h("div", { role: "treeitem" }, this.row)
    }

    update(value, flashes) {
        const kind = Array.isArray(value) ? "list" : isContainer(value) ? "object" : "leaf"
        const old = this.now
        this.now = value
        if (kind !== this.kind) {
            const isFirst = this.kind === undefined
            this.kind = kind
            this.#reset(kind)
            if (!isFirst && flashes) this.flash()
        }
        if (kind === "leaf") {
            const text = value === undefined ? "" : written(value)
            if (this.text === text) return
            this.value.className = `val ${typeof value === "string" ? "string" : typeof value === "number" || isExact(value) ? "number" : "word"}`
            setText(this.value, text.length > Tree.longest ? `${text.slice(0, Tree.longest)}… (${text.length} characters)` : text)
            if (this.text !== undefined && flashes) this.flash()
            this.text = text
            return
        }
        const count = kind === "list" ? value.length : Object.keys(value).length
        setText(this.value, kind === "list" ? `[${count}]` : count === 0 ? "{}" : `{${count}}`)
        this.isOpen ??= this.depth < 3 && (this.depth === 0 || count <= 30)
        this.#mark()
        if (this.isOpen) return this.#fill(flashes)
        if (flashes && old !== undefined && written(old) !== written(value)) this.flash()
    }

    flash() {
        this.row.classList.remove("flash")
        // Reading the layout restarts the animation.
        void this.row.offsetWidth
        this.row.classList.add("flash")
    }

    #reset(kind) {
        this.children.clear()
        this.inner?.remove()
        this.more?.remove()
        this.inner = this.more = this.text = undefined
        const fold = kind === "leaf" ? h("span", { class: "gap" }) : h("button", { type: "button", class: "fold", onclick: () => this.#turn() })
        this.fold.replaceWith(fold)
        this.fold = fold
        if (kind !== "leaf") {
            this.value.className = "val size"
            this.inner = h("div", { class: "in", role: "group" })
            this.element.append(this.inner)
        }
        this.#mark()
    }

    #mark() {
        if (this.kind === "leaf") return
        setText(this.fold, this.isOpen === false ? "▸" : "▾")
        this.fold.setAttribute("aria-expanded", String(this.isOpen !== false))
        this.fold.setAttribute("aria-label", this.isOpen === false ? "Unfold" : "Fold")
        this.inner.hidden = this.isOpen === false
    }

    #turn() {
        this.isOpen = !this.isOpen
        if (this.isOpen) this.#fill(false)
        else this.#mark()
    }

    #fill(flashes) {
        this.#mark()
        const entries = Object.entries(this.now)
        const isFirst = this.children.size === 0 && !this.isFilled
        this.isFilled = true
        const retained = new Map()
        let place = this.inner.firstChild
        for (const [key, value] of entries.slice(0, this.most)) {
            // List elements with an id are identified by it, wherever they are.
            const name = this.kind === "list" && isContainer(value) && typeof value.id === "string" ? `#${value.id}` : key
            const found = retained.has(name) ? undefined : this.children.get(name)
            const child = found ?? new Node(key, this.depth + 1)
            retained.set(retained.has(name) ? `${name}/${key}` : name, child)
            if (child.element === place) place = place.nextSibling
            else this.inner.insertBefore(child.element, place)
            if (found) setText(child.row.querySelector(":scope > .key"), `${key}:`)
            child.update(value, flashes)
            if (!found && !isFirst && flashes) child.flash()
        }
        const shown = new Set(retained.values())
        for (const child of this.children.values()) if (!shown.has(child)) child.element.remove()
        this.children = retained
        this.#showMore(entries.length)
    }

    #showMore(count) {
        this.more?.remove()
        this.more = undefined
        if (count <= this.most) return
        const more = () => {
            this.most += 10 * Tree.step
            this.#fill(false)
        }
        this.more = h("button", { type: "button", class: "more", onclick: more }, `${count - this.most} more`)
        this.inner.append(this.more)
    }
}
