/// The filters of version 2: `{"type":"predefined","name":"threshold","parameters":{"field":"count","value":"10"}}`.
extension StreamFilter {
    /// Reads one; nil for `all`, and for what only its client's own server knows: such filters let everything through, as they do
    /// at a server that has not been told of them.
    ///
    /// `field` names a member of the state; without one, `nonEmpty` looks at the whole state.
    package static func legacy(_ text: UnsafeRawBufferPointer) throws(EnvelopeError) -> StreamFilter? {
        guard text.first == 0x7B else { throw EnvelopeError("'streamFilter' must be an object") }
        func string(_ pointer: String) -> String? {
            guard let range = JSONPointer(pointer)?.lookup(in: text), text[range.lowerBound] == 0x22 else { return nil }
            var cursor = JSONCursor(text)
            cursor.at = range.lowerBound
            guard let string = try? cursor.string() else { return nil }
            return JSONString.text(cursor.bytes(string), isEscaped: string.isEscaped)
        }
        let field = string("/parameters/field").flatMap { Self.path(steps: [$0]).path }
        if let field, field.utf8.count > longestText {
            throw EnvelopeError("'field' of a filter is longer than \(longestText) bytes")
        }
        guard string("/type") == "predefined" else { return nil }
        switch string("/name") {
        case "changed": return .distinct()
        case "nonEmpty": return .where(field ?? "", .nonEmpty)
        case "threshold":
            guard let field, let value = string("/parameters/value").flatMap(Double.init), value.isFinite else {
                return nil
            }
            return .where(field, threshold(string("/parameters/comparison"), .double(value)))
        default: return nil
        }
    }

    /// A comparison that it does not know is `gt`. What is no number lets a version through.
    private static func threshold(_ comparison: String?, _ value: StreamScalar) -> StreamCondition {
        let condition: StreamCondition =
            switch comparison {
            case "gte", ">=": .atLeast(value)
            case "lt", "<": .less(than: value)
            case "lte", "<=": .atMost(value)
            case "eq", "==": .equal(value)
            case "neq", "!=": .notEqual(value)
            default: .greater(than: value)
            }
        return condition.ofNumbersAlone
    }
}
