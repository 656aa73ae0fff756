/// What brings magic codes to those who asked for them.
public protocol MagicCodeMailer: Sendable {
    /// Hands a code over to be delivered, or throws. It should give up after some time by itself.
    ///
    /// - Parameter address: ASCII without spaces, quotes, brackets and control characters.
    func send(_ code: String, to address: String) async throws
}

/// Why a mailer did not hand a code over; for the operator, not for clients.
public struct MailError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}

/// Hands codes to a closure; for development, where the server prints them, and for tests.
public struct ClosureMailer: MagicCodeMailer {
    private let body: @Sendable (_ code: String, _ address: String) async throws -> Void

    public init(_ body: @escaping @Sendable (_ code: String, _ address: String) async throws -> Void) {
        self.body = body
    }

    public func send(_ code: String, to address: String) async throws { try await body(code, address) }
}
