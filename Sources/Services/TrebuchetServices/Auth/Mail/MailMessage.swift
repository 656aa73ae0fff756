internal import Glibc

/// A mail with a code or a notice (RFC 5322).
struct MailMessage {
    let sender: String
    let recipient: String
    /// The message with CR LF line ends and without dot-stuffing.
    let text: String

    /// - Parameters:
    ///   - sender: validated like a recipient.
    ///   - seconds: the current time, since 1970.
    ///   - id: unique among messages.
    init(
        code: String, from sender: String, to recipient: String, seconds: Int = time(nil), id: String = Self.newID()
    ) throws(AuthError) {
        try self.init(
            subject: "Your code: \(code)",
            body: [
                "\(code) is your code to sign in, or to confirm this address.", "",
                "It is valid once and for a short time. If you did not request it, ignore this mail.",
            ], from: sender, to: recipient, seconds: seconds, id: id)
    }

    init(_ notice: AccountNotice, from sender: String, to recipient: String) throws(AuthError) {
        switch notice {
        case .addressChanged(let address):
            // Validated like a recipient, because it is part of the text.
            let address = try MailAddress(address).text
            try self.init(
                subject: "Your address was changed",
                body: [
                    "Your account had this address. Its new address is \(address).", "",
                    "If you did not request this change, contact the operator of the server.",
                ], from: sender, to: recipient, seconds: time(nil), id: Self.newID())
        }
    }

    private static func newID() -> String {
        [UInt8].random(count: 12).map { String($0, radix: 16) }.joined()
    }

    private init(
        subject: String, body: [String], from sender: String, to recipient: String, seconds: Int, id: String
    ) throws(AuthError) {
        self.sender = try MailAddress(sender).text
        self.recipient = try MailAddress(recipient).text
        let domain = self.sender.split(separator: "@").last ?? "localhost"
        let lines = [
            "From: <\(self.sender)>", "To: <\(self.recipient)>", "Subject: \(subject)",
            "Date: \(Self.date(seconds))", "Message-ID: <\(id)@\(domain)>", "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0", "Content-Type: text/plain; charset=us-ascii", "",
        ]
        text = (lines + body).map { $0 + "\r\n" }.joined()
    }

    /// Formats a date as `Sat, 21 Nov 2026 16:04:07 +0000` (RFC 5322 §3.3).
    private static func date(_ seconds: Int) -> String {
        var seconds = time_t(seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][Int(parts.tm_wday)]
        let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][
            Int(parts.tm_mon)]
        return "\(day), \(two(parts.tm_mday)) \(month) \(parts.tm_year + 1900) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) +0000"
    }
}
