import { Value } from "./trebuchet.js"
import { isSame } from "./values.js"

/** A store whose value stays the same object while it is equal. */
export class DisplayedValue<T> extends Value<T> {
    _show(value: T): void {
        if (!isSame(this.getSnapshot(), value)) this.set(value)
    }
}
