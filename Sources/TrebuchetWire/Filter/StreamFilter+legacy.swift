/// The filters of version 2: `{"type":"predefined","name":"threshold","parameters":{"field":"count","value":"10"}}`.
extension StreamFilter {
    /// Reads one; nil for `all`, which filters nothing. Custom ones are known to their own servers alone.
    ///
    /// A threshold counts from its value on. Without a field, the whole state is looked at.
    package static func legacy(_ text: UnsafeRawBufferPointer) throws(EnvelopeError) -> StreamFilter? {
        func string(_ pointer: String) -> String? {
            guard let range = JSONPointer(pointer)?.lookup(in: text), text[range.lowerBound] == 0x22 else { return nil }
            var cursor = JSONCursor(text)
            cursor.at = range.lowerBound
            guard let string = try? cursor.string() else { return nil }
            return JSONString.text(cursor.bytes(string), isEscaped: string.isEscaped)
        }
        let field = string("/parameters/field").map { Self.path(steps: [$0]).path ?? "" } ?? ""
        switch (string("/type"), string("/name")) {
        case ("all", _): return nil
        case ("predefined", "changed"): return .distinct()
        case ("predefined", "nonEmpty"): return .where(field, .nonEmpty)
        case ("predefined", "threshold"):
            guard let value = string("/parameters/value") else {
                throw EnvelopeError("the filter 'threshold' needs a 'value'")
            }
            let number = Double(value).flatMap { $0.isFinite ? StreamScalar.double($0) : nil }
            return .where(field, .atLeast(number ?? .string(value)))
        case (let type, let name):
            throw EnvelopeError("this server has no filter '\(name ?? "")' of type '\(type ?? "")'")
        }
    }
}
