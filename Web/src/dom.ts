import { report } from "./store.js"
import type { Store } from "./types.js"

/** Calls the listener with the current value, and with each new one. Returns a function that ends the subscription. */
export function watch<T>(store: Store<T>, listener: (value: T) => void): () => void {
    const notify = (): void => listener(store.getSnapshot())
    const end = store.subscribe(notify)
    try {
        notify()
    } catch (error) {
        // The caller did not receive the function that ends the subscription.
        end()
        throw error
    }
    return end
}

/** Shows a value as the text of an element; the text is empty while there is no value. */
export function show<T>(store: Store<T>, element: Node, text: (value: NonNullable<T>) => string = String): () => void {
    return watch(store, (value) => (element.textContent = value == null ? "" : text(value)))
}

/**
 * Keeps one element for each element of an array, in array order.
 *
 * - `make` creates the element of a new key.
 * - `update` applies a changed value.
 * - The element of a removed key is removed.
 *
 * Errors of `key`, `make` and `update` are reported like uncaught errors. A value without an element is tried again at the next change, and
 * a failed `update` when its value changes. `make` and `update` may change the store.
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
        // Elements are removed first. A moved element loses the focus, so the elements behind a removed one must stay in place.
        for (const [name, { element }] of shown) {
            if (named.has(name)) continue
            element.remove()
            shown.delete(name)
        }
        let place = parent.firstChild
        for (const [name, value] of named) {
            // Newer values have arrived in the meantime and are shown.
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
