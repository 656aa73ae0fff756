// States of actors: how one follows from the one before, and how they are shown.
import { copied, isContainer, isExact, put, written } from "./inspector-json.js"
import { h, say } from "./inspector-parts.js"

/** What a patch (RFC 6902) makes of a value, which is not changed itself. Throws when it does not fit. */
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
    const way = names(path)
    const last = way.pop()
    const container = way.reduce(step, root)
    if (Array.isArray(container)) {
        const index = last === "-" ? container.length : Number(last)
        container.splice(index, op === "add" ? 0 : 1, ...(op === "remove" ? [] : [value]))
    } else if (op === "remove") delete container[last]
    else put(container, last, value)
}

/** The values that a state had, as far as they follow from each other. */
export class States {
    /** Takes what the inspector shows of an actor into the values that its states had, by their streams. */
    static take({ states, recorded }, known) {
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

    /** The value that a version follows from. */
    before({ version, base, previous }) {
        const known = base ?? previous
        // Null where others may have come between.
        if (known !== undefined) return this.at(known)
        const last = Math.max(...[...this.#values.keys()].filter((each) => each < version))
        return this.at(last)
    }

    /** Takes what versions, the newest first, say of themselves. */
    follow(versions) {
        for (const { version, base, patch, value } of versions.toReversed()) {
            if (this.has(version)) continue
            if (value !== undefined && value !== null) this.add(version, value)
            else if (patch && this.has(base)) {
                try {
                    this.add(version, patched(this.at(base), patch))
                } catch {
                    // It is known again from the next whole value on.
                }
            }
        }
    }
}

/** Shows a value as a tree, whose parts flash when they change. Of long lists the first parts are shown, and more when somebody asks. */
export class Tree {
    static step = 100
    static longest = 4_000

    constructor() {
        this.element = h("div", { class: "tree", role: "tree" })
    }

    /** - flashes: whether what differs from what is shown is to be seen; not when something else is looked at. */
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
            say(this.value, text.length > Tree.longest ? `${text.slice(0, Tree.longest)}… (${text.length} characters)` : text)
            if (this.text !== undefined && flashes) this.flash()
            this.text = text
            return
        }
        const count = kind === "list" ? value.length : Object.keys(value).length
        say(this.value, kind === "list" ? `[${count}]` : count === 0 ? "{}" : `{${count}}`)
        this.isOpen ??= this.depth < 3 && (this.depth === 0 || count <= 30)
        this.#mark()
        if (this.isOpen) return this.#fill(flashes)
        if (flashes && old !== undefined && written(old) !== written(value)) this.flash()
    }

    flash() {
        this.row.classList.remove("flash")
        // Read, so that it begins anew.
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
        say(this.fold, this.isOpen === false ? "▸" : "▾")
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
        const kept = new Map()
        let place = this.inner.firstChild
        for (const [key, value] of entries.slice(0, this.most)) {
            // Parts of a list that have a name of their own are known by it, wherever they stand.
            const name = this.kind === "list" && isContainer(value) && typeof value.id === "string" ? `#${value.id}` : key
            const found = kept.has(name) ? undefined : this.children.get(name)
            const child = found ?? new Node(key, this.depth + 1)
            kept.set(kept.has(name) ? `${name}/${key}` : name, child)
            if (child.element === place) place = place.nextSibling
            else this.inner.insertBefore(child.element, place)
            if (found) say(child.row.querySelector(":scope > .key"), `${key}:`)
            child.update(value, flashes)
            if (!found && !isFirst && flashes) child.flash()
        }
        const stays = new Set(kept.values())
        for (const child of this.children.values()) if (!stays.has(child)) child.element.remove()
        this.children = kept
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
