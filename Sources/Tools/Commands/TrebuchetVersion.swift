internal import Trebuchet

/// The version of this program.
package enum TrebuchetVersion {
    /// The version of the release.
    package static let number = LibraryVersion.number

    /// The line that `trebuchet --version` prints: `trebuchet 0.9.0 (Swift 6.3, linux x86_64)`.
    package static var line: String { "trebuchet \(number) (Swift \(compiler), linux \(architecture))" }

    private static var compiler: String {
        #if compiler(>=6.5)
            return "6.5 or later"
        #elseif compiler(>=6.4)
            return "6.4"
        #elseif compiler(>=6.3)
            return "6.3"
        #else
            return "6.2"
        #endif
    }

    private static var architecture: String {
        #if arch(x86_64)
            return "x86_64"
        #elseif arch(arm64)
            return "aarch64"
        #else
            return "of another architecture"
        #endif
    }
}
