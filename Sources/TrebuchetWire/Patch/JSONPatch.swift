/// Changes of a JSON text, as JSON (RFC 6902).
///
/// Texts are bytes, and stay so: what a patch does not touch is copied and never decoded. Names of members are unique in
/// an object, as every encoder writes them.
package enum JSONPatch {
    /// The document after all operations of the patch; when one fails, an error.
    ///
    /// An operation whose path goes through a name that comes twice in its object fails: peers do not agree which one
    /// counts. Values may nest as deep as in a message, and the result, or a value that is copied on the way to it, may
    /// have `maximumBytes`. A patch that takes far more work than its size and the document's call for, or than a given
    /// `workLimit`, is `tooLarge`.
    /// What lies outside of the touched arrays and objects is not checked again.
    package static func apply(
        _ patch: UnsafeRawBufferPointer, to document: UnsafeRawBufferPointer, maximumBytes: Int, workLimit: Int? = nil
    ) throws(JSONPatchError) -> [UInt8] {
        guard patch.count <= Int(Int32.max), document.count <= Int(Int32.max) else {
            throw JSONPatchError(.tooLarge, "a text of 2 GiB or more")
        }
        var draft = JSONDraft(
            document, maximumBytes: maximumBytes, workLimit: workLimit ?? 65_536 + 128 * (document.count + patch.count))
        try read(patch) { (operation) throws(JSONPatchError) in try draft.run(operation) }
        return try draft.text()
    }

    /// A patch that makes `old` into a text of the same value as `new`; nil when it would have `maximumBytes` or more.
    ///
    /// It costs one pass over what comes before the first difference, and one over both texts from there to the last; what
    /// is equal behind that is only compared. Elements of arrays are matched by their `id` member, or as a whole. Both
    /// texts are JSON. What they have in common is not checked; where they differ, nil tells that one is not, or nests
    /// deeper than a message may.
    package static func difference(
        from old: UnsafeRawBufferPointer, to new: UnsafeRawBufferPointer, maximumBytes: Int
    ) -> [UInt8]? {
        guard old.count <= Int(Int32.max), new.count <= Int(Int32.max) else { return nil }
        var difference = JSONDifference(from: old, to: new, maximumBytes: maximumBytes)
        return difference.patch()
    }

    /// Reads a patch operation by operation; their values point into it.
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
