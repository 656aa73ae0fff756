internal import Transports

/// An extension with its parameters, as an element of `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
struct WebSocketExtension: Equatable {
    /// A parameter of an extension.
    struct Parameter: Equatable {
        let name: String
        let value: String?
    }

    let name: String
    let parameters: [Parameter]

    /// Returns all extensions in the header, in order; nil if one has invalid syntax.
    static func list(_ headers: HTTPHeaders) -> [WebSocketExtension]? {
        var list: [WebSocketExtension] = []
        for element in headers.list("Sec-WebSocket-Extensions") {
            guard let parsed = WebSocketExtension(element) else { return nil }
            list.append(parsed)
        }
        return list
    }

    init?(_ text: String) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map(\.trimmingSpaces)
        guard let first = parts.first, HTTPHeadParser.isToken(first.utf8) else { return nil }
        var parameters: [Parameter] = []
        for part in parts.dropFirst() {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map(\.trimmingSpaces)
            guard HTTPHeadParser.isToken(sides[0].utf8) else { return nil }
            var value: String?
            if sides.count == 2 {
                guard let token = Self.token(sides[1]) else { return nil }
                value = token
            }
            parameters.append(Parameter(name: String(sides[0]), value: value))
        }
        name = String(first)
        self.parameters = parameters
    }

    /// Returns a value, quoted or not; a quoted value must be a token too.
    private static func token(_ text: Substring) -> String? {
        var text = text
        if text.utf8.count >= 2, text.first == "\"", text.last == "\"" { text = text.dropFirst().dropLast() }
        return HTTPHeadParser.isToken(text.utf8) ? String(text) : nil
    }
}
