/// The messages of the protocol as texts of a schedule.
struct Envelope {
    var type = "invocation"
    /// Names and values as in the JSON.
    var members: [(name: String, value: StepText)] = []

    private static func quoted(_ text: StepText) -> StepText { StepText("\"") + text + StepText("\"") }

    /// A call. The version decides the form of arguments and actor.
    static func call(
        _ target: StepText, _ arguments: [StepText] = [], of actor: StepText = "victim", id: StepText = "c#",
        version: Int = 3
    ) -> Envelope {
        var envelope = Envelope()
        let list = arguments.map { version == 3 ? $0.description : base64($0) }.joined(separator: ",")
        envelope.members = [
            ("callID", quoted(id)),
            ("actorID", version == 3 ? quoted(actor) : StepText(#"{"id":""#) + actor + StepText(#""}"#)),
            ("targetIdentifier", quoted(target)),
            ("arguments", StepText("[\(list)]")),
        ]
        if version == 2 { envelope.members.append(("protocolVersion", "2")) }
        return envelope
    }

    /// In versions 1 and 2 arguments are base64. A large one is replaced by a text of z of that size, so that the schedule stays short.
    private static func base64(_ text: StepText) -> String {
        let bytes = text.bytes(number: 1)
        if bytes.count > 3_000 { return "\"Inp6<enp6*\(bytes.count / 3)>enoi\"" }
        return "\"" + StepText(quoting: Base64Text.encode(bytes)).description + "\""
    }

    func with(_ name: String, _ value: StepText) -> Envelope {
        var copy = self
        copy.members.removeAll { $0.name == name }
        copy.members.append((name, value))
        return copy
    }

    func with(_ name: String, text: StepText) -> Envelope { with(name, Self.quoted(text)) }

    func without(_ name: String) -> Envelope {
        var copy = self
        copy.members.removeAll { $0.name == name }
        return copy
    }

    func of(type: String) -> Envelope {
        var copy = self
        copy.type = type
        return copy
    }

    static var hello: Envelope { Envelope(type: "hello") }

    static func cancel(_ id: StepText) -> Envelope {
        Envelope(type: "cancel", members: [("callID", quoted(id))])
    }

    static func streamEnd(_ id: StepText) -> Envelope {
        Envelope(type: "streamEnd", members: [("streamID", quoted(id)), ("reason", "\"clientUnsubscribed\"")])
    }

    static func resume(_ stream: StepText, of actor: StepText, id: StepText = "c#") -> Envelope {
        Envelope(
            type: "streamResume",
            members: [
                ("streamID", quoted(id)), ("callID", quoted(id)), ("actorID", quoted(actor)),
                ("targetIdentifier", quoted(stream)), ("epoch", "\"4f1c\""), ("lastSequence", "17"),
            ])
    }

    var text: StepText {
        let list = members.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ",")
        return StepText(#"{"type":"\#(type)","payload":{\#(list)}}"#)
    }
}

extension StepText: ExpressibleByStringLiteral {
    init(stringLiteral value: String) { self.init(value) }
}

private enum Base64Text {
    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = Array(bytes[start..<min(start + 3, bytes.count)])
            let word = part.enumerated().reduce(0) { $0 | Int($1.element) << (16 - 8 * $1.offset) }
            for place in 0..<4 {
                text.append(place <= part.count ? letters[word >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
            }
        }
        return text
    }
}
