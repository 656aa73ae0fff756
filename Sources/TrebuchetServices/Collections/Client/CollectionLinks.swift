internal import SharedState
internal import Synchronization
internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A client's links to the collections that it uses: one for each, as long as the backend lives.
final class CollectionLinks: Sendable {
    private struct Contents {
        var links: [String: CollectionLink] = [:]
        var folder: URL?
        var files: any FileStorage = DiskFileStorage.secrets
    }

    private let contents = Mutex(Contents())

    func keepWrites(in folder: URL, _ files: any FileStorage) {
        contents.withLock { contents in
            precondition(contents.links.isEmpty, "say where writes are kept before a collection is used")
            (contents.folder, contents.files) = (folder, files)
        }
    }

    func link(to name: String, _ client: TrebuchetClient) -> CollectionLink {
        contents.withLock { contents in
            if let link = contents.links[name] { return link }
            let file = contents.folder.map { folder in
                let files = contents.files
                let url = folder.appendingPathComponent("\(name).json")
                return PendingWritesFile(url: url, files: files)
            }
            let link = CollectionLink(name, client, file)
            contents.links[name] = link
            return link
        }
    }
}
