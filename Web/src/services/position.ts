/**
 * Up to which write a result shows what the server has. A result has the number of the last write that changed it, and does not come
 * again where later ones change nothing in it; the server says so with its tickets and with the answers of writes: "your result, once it
 * is at this write, shows all up to that one". Pure.
 */
export class Position {
    private _shown = -1
    private _sure = -1
    private _expected: [shown: number, through: number] | undefined

    /** -1 before there is a result. */
    get _seen(): number {
        return this._shown < 0 ? -1 : Math.max(this._shown, this._sure)
    }

    /** What comes now is another view's, perhaps of a server that has begun anew. */
    _begin(): void {
        this._sure = -1
        this._expected = undefined
    }

    _shows(revision: number): void {
        this._shown = revision
        if (!this._expected || this._expected[0] > revision) return
        this._sure = Math.max(this._sure, this._expected[1])
        this._expected = undefined
    }

    _isTold(shown: number, through: number): void {
        const { _expected: expected } = this
        if (this._shown >= shown) this._sure = Math.max(this._sure, through)
        else if (!expected || expected[0] <= shown) {
            this._expected = [shown, expected?.[0] === shown ? Math.max(through, expected[1]) : through]
        }
    }
}
