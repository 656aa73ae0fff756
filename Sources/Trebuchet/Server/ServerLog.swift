internal import Glibc

/// Where a server writes what no caller is told.
public enum ServerLog {
    /// A line on standard error.
    public static let standardError: @Sendable (String) -> Void = { line in
        let text = "trebuchet: \(line)\n"
        // In one call, so that lines of several threads stay whole.
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
