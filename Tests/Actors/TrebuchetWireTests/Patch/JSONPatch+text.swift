import TrebuchetWire

/// Patches of strings.
extension JSONPatch {
    static func apply(
        _ patch: String, to document: String, maximumBytes: Int = 1 << 20
    ) throws(JSONPatchError) -> String {
        let (patch, document) = (Array(patch.utf8), Array(document.utf8))
        let result = patch.withUnsafeBytes { patch in
            document.withUnsafeBytes { document in
                Result { () throws(JSONPatchError) in
                    try apply(patch, to: document, maximumBytes: maximumBytes)
                }
            }
        }
        return String(decoding: try result.get(), as: UTF8.self)
    }

    static func difference(from old: String, to new: String, maximumBytes: Int = 1 << 20) -> String? {
        let (old, new) = (Array(old.utf8), Array(new.utf8))
        return old.withUnsafeBytes { old in
            new.withUnsafeBytes { difference(from: old, to: $0, maximumBytes: maximumBytes) }
        }.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension JSONText {
    static func isEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        return one.withUnsafeBytes { one in other.withUnsafeBytes { isEqual(one, $0) } }
    }
}
