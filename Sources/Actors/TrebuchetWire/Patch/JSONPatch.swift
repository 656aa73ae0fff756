/// JSON Patch (RFC 6902): changes of a JSON text, as JSON.
///
/// Texts are bytes; the unchanged parts are copied and never decoded. Member names must be unique in an object, as every encoder
/// writes them.
package enum JSONPatch {
    /// Returns the document after all operations of the patch. Throws if an operation fails.
    ///
    /// An operation fails if its path contains a duplicate name, because peers disagree on which member counts. The nesting limit
    /// is that of messages. The result, and any value copied in between, may have `maximumBytes`. A patch fails with `tooLarge`
    /// if its work is disproportionate to its size and the document's, or above `workLimit`. Parts outside the changed arrays and
    /// objects are not validated again.
    package static func apply(
        _ patch: UnsafeRawBufferPointer, to document: UnsafeRawBufferPointer, maximumBytes: Int, workLimit: Int? = nil
    ) throws(JSONPatchError) -> [UInt8] {
        guard patch.count <= Int(Int32.max), document.count <= Int(Int32.max) else {
            throw JSONPatchError(.tooLarge, "a text of 2 GiB or more")
        }
        var draft = EditableJSON(
            document, maximumBytes: maximumBytes, workLimit: workLimit ?? 65_536 + 128 * (document.count + patch.count))
        try read(patch) { (operation) throws(JSONPatchError) in try draft.run(operation) }
        return try draft.text()
    }

    /// Returns a patch that transforms `old` into a text with the same value as `new`; nil if it would have `maximumBytes` or
    /// more.
    ///
    /// The cost is one pass up to the first difference, and one over both texts from there to the last difference; the equal rest
    /// is only compared. Array elements are matched by their `id` member, or as a whole. Both texts must be JSON. Their common
    /// parts are not validated. If a differing part is invalid, or nested deeper than messages allow, the result is nil.
    package static func difference(
        from old: UnsafeRawBufferPointer, to new: UnsafeRawBufferPointer, maximumBytes: Int
    ) -> [UInt8]? {
        guard old.count <= Int(Int32.max), new.count <= Int(Int32.max) else { return nil }
        var difference = JSONDifference(from: old, to: new, maximumBytes: maximumBytes)
        return difference.patch()
    }

    /// Reads the operations of a patch, whose values point into it.
    package static func read(
        _ patch: UnsafeRawBufferPointer, _ body: (PatchOperation) throws(JSONPatchError) -> Void
    ) throws(JSONPatchError) {
        guard patch.count <= Int(Int32.max) else { throw JSONPatchError(.tooLarge, "a text of 2 GiB or more") }
        var cursor = JSONCursor(patch)
        var number = 0
        do throws(JSONPatchError) {
            while let operation = try PatchOperation.next(&cursor, isFirst: number == 0) {
                try body(operation)
                number += 1
            }
        } catch {
            var error = error
            error.operation = number
            throw error
        }
    }
}
