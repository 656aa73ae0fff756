package import Transports

extension HTTPHeaders {
    /// Adds fields, in place of those of the same names. `Vary` is a list, to which the value is added.
    package mutating func replace(with fields: HTTPHeaders) {
        for field in fields.fields {
            if !Self.equal(field.name, "Vary") { remove(field.name) }
            add(field.name, field.value)
        }
    }

    /// Returns whether a text is a token, such as the name of a field or a method (RFC 9110 §5.6.2).
    package static func isName(_ text: String) -> Bool { HTTPHeadParser.isToken(text.utf8) }
}
