internal import Bytes
internal import Outbound

/// The client side of SMTP (RFC 5321) for one mail. Pure: its input is reply lines, its output the next step.
struct SMTPStateMachine: TextProtocolDialogue {
    private enum State { case greeting, hello, sender, recipient, data, message, over }

    private static let maximumReplyLength = 100

    private let mail: MailMessage
    private var state = State.greeting
    private var lines = 0

    init(_ mail: MailMessage) { self.mail = mail }

    /// Handles one line of a reply, without its line end.
    mutating func receive(_ line: String) -> TextProtocolAction {
        let bytes = Array(line.utf8.prefix(4))
        guard bytes.count >= 3, let code = Int(String(decoding: bytes[..<3], as: UTF8.self)),
            (200...599).contains(code)
        else { return fail("it sent '\(line.prefix(bytes: 80))', which is not an SMTP reply") }
        lines += 1
        guard lines <= Self.maximumReplyLength else {
            return fail("its reply has more than \(Self.maximumReplyLength) lines")
        }
        if bytes.count == 4, bytes[3] == UInt8(ascii: "-") { return .wait }
        lines = 0
        guard expected.contains(code) else {
            return fail("it replied '\(line.prefix(bytes: 200))' \(phaseDescription)")
        }
        return next()
    }

    private var expected: [Int] {
        switch state {
        case .greeting: [220]
        case .recipient: [250, 251]
        case .data: [354]
        case .hello, .sender, .message, .over: [250]
        }
    }

    private mutating func next() -> TextProtocolAction {
        switch state {
        case .greeting:
            state = .hello
            return .send("EHLO localhost\r\n")
        case .hello:
            state = .sender
            return .send("MAIL FROM:<\(mail.sender)>\r\n")
        case .sender:
            state = .recipient
            return .send("RCPT TO:<\(mail.recipient)>\r\n")
        case .recipient:
            state = .data
            return .send("DATA\r\n")
        case .data:
            state = .message
            return .send(Self.dotStuffed(mail.text) + ".\r\n")
        case .message, .over:
            state = .over
            return .finish("QUIT\r\n")
        }
    }

    private mutating func fail(_ reason: String) -> TextProtocolAction {
        state = .over
        return .fail(reason)
    }

    private var phaseDescription: String {
        switch state {
        case .greeting: "as a greeting"
        case .hello: "to EHLO"
        case .sender: "to MAIL FROM"
        case .recipient: "to RCPT TO"
        case .data: "to DATA"
        case .message, .over: "to the mail"
        }
    }

    /// Adds a dot to lines that begin with one (§4.5.2), so that none is taken for the end.
    static func dotStuffed(_ text: String) -> String {
        text.split(separator: "\r\n", omittingEmptySubsequences: false)
            .map { $0.hasPrefix(".") ? "." + $0 : String($0) }.joined(separator: "\r\n")
    }
}
