internal import Glibc

/// A signal to the process.
public struct ProcessSignal: Hashable, Sendable, CustomStringConvertible {
    /// The number of the signal in the operating system: 15 is SIGTERM.
    public let number: Int32

    /// Creates a signal from its number, which is not validated.
    public init(_ number: Int32) { self.number = number }

    /// SIGINT: control-C at the terminal.
    public static let interrupt = ProcessSignal(SIGINT)
    /// SIGTERM: the regular request to end the process.
    public static let terminate = ProcessSignal(SIGTERM)
    /// SIGHUP, at which `TrebuchetServer.run()` reloads certificates.
    public static let hangUp = ProcessSignal(SIGHUP)

    /// The system's description of the signal.
    public var description: String { String(cString: strsignal(number)) }
}
