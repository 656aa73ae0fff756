/// The version of this package.
package enum LibraryVersion {
    /// The version of the release; the file VERSION, which scripts/package reads, has the same.
    package static let number = "0.9.0"
}
