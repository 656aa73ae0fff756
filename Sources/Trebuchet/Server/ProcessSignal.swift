internal import Glibc

/// A signal to the process.
public struct ProcessSignal: Hashable, Sendable, CustomStringConvertible {
    /// As the system counts signals: 15 is SIGTERM.
    public let number: Int32

    /// Any signal, by its number; it is not checked here.
    public init(_ number: Int32) { self.number = number }

    /// SIGINT: control-C at the terminal.
    public static let interrupt = ProcessSignal(SIGINT)
    /// SIGTERM: the polite request of whoever runs the process.
    public static let terminate = ProcessSignal(SIGTERM)
    /// SIGHUP.
    public static let hangUp = ProcessSignal(SIGHUP)

    public var description: String { String(cString: strsignal(number)) }
}
