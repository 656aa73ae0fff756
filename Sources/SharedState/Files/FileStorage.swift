#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What file storage keys read and write; see ``SharedStore/init(files:)``. Called from any thread.
public protocol FileStorage: Sendable {
    /// The file's bytes, nil when there is no file.
    func read(_ file: URL) throws -> Data?

    /// Puts the bytes in the place of the file, as a whole or not at all. For one file, called once at a time.
    func replace(_ file: URL, with data: Data) throws
}

/// The files of the disk.
///
/// A new content is written beside the old one and takes its name, so a crash leaves the one or the other.
public struct DiskFileStorage: FileStorage {
    public init() {}

    public func read(_ file: URL) throws -> Data? {
        do {
            return try Data(contentsOf: file)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return nil
        }
    }

    /// Makes the folder too if it is missing.
    public func replace(_ file: URL, with data: Data) throws {
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: file, options: .atomic)
    }
}
