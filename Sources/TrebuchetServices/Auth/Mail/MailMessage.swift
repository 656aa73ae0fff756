internal import Glibc

/// The mail that brings a code (RFC 5322).
struct MailMessage {
    let sender: String
    let recipient: String
    /// Without dots doubled; each line ends in CR LF.
    let text: String

    /// - Parameters:
    ///   - sender: checked like a recipient.
    ///   - seconds: now, since 1970.
    ///   - id: unique among messages.
    init(
        code: String, from sender: String, to recipient: String, seconds: Int = time(nil),
        id: String = [UInt8].random(count: 12).map { String($0, radix: 16) }.joined()
    ) throws(AuthError) {
        self.sender = try MailAddress(sender).text
        self.recipient = try MailAddress(recipient).text
        let domain = self.sender.split(separator: "@").last ?? "localhost"
        let lines = [
            "From: <\(self.sender)>", "To: <\(self.recipient)>", "Subject: Your code: \(code)",
            "Date: \(Self.date(seconds))", "Message-ID: <\(id)@\(domain)>", "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0", "Content-Type: text/plain; charset=us-ascii", "",
            "\(code) is your code to sign in.", "",
            "It is good once and for a short time. If you did not ask for it, ignore this mail.",
        ]
        text = lines.map { $0 + "\r\n" }.joined()
    }

    /// `Sat, 21 Nov 2026 16:04:07 +0000` (RFC 5322 §3.3).
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
