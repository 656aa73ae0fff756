import { report } from "./store.js"
import type { Store } from "./types.js"

/** Calls the listener with the value of now, and with each new one. Gives what ends it. */
export function watch<T>(store: Store<T>, listener: (value: T) => void): () => void {
    const tell = (): void => listener(store.getSnapshot())
    const end = store.subscribe(tell)
    try {
        tell()
    } catch (error) {
        // Nobody has what ends it.
        end()
        throw error
    }
    return end
}

/** Shows a value as the text of an element, empty while there is none. */
export function show<T>(store: Store<T>, element: Node, text: (value: NonNullable<T>) => string = String): () => void {
    return watch(store, (value) => (element.textContent = value == null ? "" : text(value)))
}

/**
 * Keeps an element for each element of an array, in its order: made by `make` when its key is new, brought up to date by `update` when
 * its value has changed, and taken away when its key is gone. What the three throw is told as any uncaught error is: a value that has no
 * element is tried again with the next change, one that was not brought up to date when it changes.
 * `make` and `update` may change the store.
 */
export function list<T, E extends ChildNode>(
    store: Store<readonly T[] | undefined>,
    parent: ParentNode & Node,
    key: (value: T) => unknown,
    make: (value: T) => E,
    update: (element: E, value: T) => void = () => {}
): () => void {
    const shown = new Map<unknown, { element: E; value?: T }>()
    let turn = 0
    return watch(store, (values = []) => {
        const mine = ++turn
        const named = new Map<unknown, T>()
        for (const value of values) {
            try {
                const name = key(value)
                if (!named.has(name)) named.set(name, value)
            } catch (error) {
                report(error)
            }
        }
        // First: an element that is moved loses the focus, so those behind one that is gone stay where they are.
        for (const [name, { element }] of shown) {
            if (named.has(name)) continue
            element.remove()
            shown.delete(name)
        }
        let place = parent.firstChild
        for (const [name, value] of named) {
            // Newer values came meanwhile, and are shown.
            if (mine !== turn) return
            try {
                const each = shown.get(name) ?? { element: make(value) }
                if (mine !== turn) return
                shown.set(name, each)
                if (place === each.element) place = each.element.nextSibling
                else parent.insertBefore(each.element, place)
                const { value: before } = each
                each.value = value
                if (before !== value) update(each.element, value)
            } catch (error) {
                report(error)
            }
        }
    })
}
