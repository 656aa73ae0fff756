import type { State, TrebuchetError } from "./trebuchet.js"

/**
 * Follows a state that the server shows to connections alone that have asked for it in another way first. The client asks for it by
 * itself on each connection, which is refused when that comes too early: then it is begun anew.
 */
export class Followed<T> {
    private _ends: (() => void)[] = []

    constructor(
        private _state: State<T>,
        private _came: (value: T) => void,
        private _failed: (error: TrebuchetError) => void,
        private _changed: () => void = () => {}
    ) {}

    get _isLive(): boolean {
        return this._state.status.getSnapshot().phase === "live"
    }

    _begin(): void {
        this._end()
        const { _state: state } = this
        const take = (): void => {
            const value = state.getSnapshot()
            if (value !== undefined) this._came(value)
        }
        this._ends = [
            state.subscribe(take),
            state.status.subscribe(() => {
                const { phase, error } = state.status.getSnapshot()
                if (phase === "failed") this._failed(error!)
                else this._changed()
            }),
        ]
        take()
    }

    _end(): void {
        for (const end of this._ends.splice(0)) end()
    }
}
