#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// A line on standard error, for problems without a handler.
package enum StandardErrorWarning {
    /// Writes a line if standard error accepts it immediately, and drops it otherwise. It never blocks and never ends the
    /// process.
    ///
    /// - Parameter text: control characters are escaped. Only the first 500 characters are written.
    package static func write(_ text: String) {
        var state = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
        // A write without a reader would end the process. A writable pipe accepts this number of bytes at once.
        guard poll(&state, 1, 0) == 1, Int32(state.revents) == Int32(POLLOUT) else { return }
        let line = Array("trebuchet: \(printable(text))\n".utf8)
        _ = line.withUnsafeBytes { systemWrite(2, $0) }
    }

    private static func printable(_ text: String) -> String {
        text.unicodeScalars.prefix(500).reduce(into: "") { line, scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .format: line += scalar.escaped(asASCII: true)
            default: line.unicodeScalars.append(scalar)
            }
        }
    }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(descriptor, bytes.baseAddress, bytes.count)
}
