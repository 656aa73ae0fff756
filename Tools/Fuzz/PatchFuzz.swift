import Foundation
import TrebuchetWire

/// Patches: they never crash, their result for JSON is JSON within the limit, and a difference turns one text into the other.
enum PatchFuzz {
    /// A document and a patch, separated by a zero byte.
    static func apply(_ input: [UInt8]) {
        let (document, patch) = halves(input)
        let limit = 2 * document.count + 64
        guard let result = applying(patch, to: document, limit) else { return }
        precondition(result.count <= limit, "\(result.count) bytes, more than \(limit)")
        guard JSONText.isValue(document) else { return }
        precondition(JSONText.isValue(result), "no JSON: \(String(decoding: result, as: UTF8.self))")
    }

    /// Two texts, separated by a zero byte.
    static func difference(_ input: [UInt8]) {
        let (old, new) = halves(input)
        let limit = 4 * new.count + 64
        let patch = old.withUnsafeBytes { old in
            new.withUnsafeBytes { JSONPatch.difference(from: old, to: $0, maximumBytes: limit) }
        }
        guard let patch else { return }
        precondition(patch.count < limit, "\(patch.count) bytes, at least \(limit)")
        // A patch cannot express a repeated name in an object.
        guard JSONText.isValue(old), JSONText.isValue(new), hasUniqueNames(old), hasUniqueNames(new) else { return }
        let text = String(decoding: patch, as: UTF8.self)
        guard let result = applying(patch, to: old, .max) else { preconditionFailure("refused: \(text)") }
        let isEqual = result.withUnsafeBytes { result in new.withUnsafeBytes { JSONText.isEqual(result, $0) } }
        precondition(isEqual, "\(text) gave \(String(decoding: result, as: UTF8.self))")
    }

    private static func halves(_ input: [UInt8]) -> ([UInt8], [UInt8]) {
        let cut = input.firstIndex(of: 0) ?? input.count
        return (Array(input[..<cut]), Array(input.dropFirst(cut + 1)))
    }

    private static func applying(_ patch: [UInt8], to document: [UInt8], _ limit: Int) -> [UInt8]? {
        patch.withUnsafeBytes { patch in
            document.withUnsafeBytes { try? JSONPatch.apply(patch, to: $0, maximumBytes: limit) }
        }
    }

    /// True if Foundation, which keeps one member of each name, finds as many members as there are colons.
    private static func hasUniqueNames(_ text: [UInt8]) -> Bool {
        guard let value = try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed) else {
            return false
        }
        var colons = 0
        var isString = false
        var isEscape = false
        for byte in text {
            if isEscape {
                isEscape = false
            } else if byte == 0x5C {
                isEscape = true
            } else if byte == 0x22 {
                isString.toggle()
            } else if byte == 0x3A, !isString {
                colons += 1
            }
        }
        return memberCount(value) == colons
    }

    private static func memberCount(_ value: Any) -> Int {
        switch value {
        case let members as [String: Any]: members.count + members.values.reduce(0) { $0 + memberCount($1) }
        case let elements as [Any]: elements.reduce(0) { $0 + memberCount($1) }
        default: 0
        }
    }
}
