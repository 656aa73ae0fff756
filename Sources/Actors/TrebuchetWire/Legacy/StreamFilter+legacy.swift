/// The filters of version 2: `{"type":"predefined","name":"threshold","parameters":{"field":"count","value":"10"}}`.
extension StreamFilter {
    /// Parses a filter; nil for `all` and for custom filters, which only the client's own server knows. Such filters deliver
    /// everything, as they do on a server without a registration for them.
    ///
    /// `field` names a member of the state; without it, `nonEmpty` applies to the whole state.
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
        if let field, field.utf8.count > maximumTextLength {
            throw EnvelopeError("'field' of a filter is longer than \(maximumTextLength) bytes")
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

    /// Returns the condition of a threshold. An unknown comparison means `gt`. A value that is no number satisfies it.
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
