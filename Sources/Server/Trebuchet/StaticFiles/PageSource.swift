internal import Glibc
internal import Networking
internal import WebSockets

/// A source of pages of a server: a folder, memory, or files that are built in.
public struct PageSource: Sendable {
    /// The kinds of sources.
    enum Kind: Sendable {
        case folder(PageFolder)
        case page(MemoryPage, path: PagePath)
        case list([PageSource])
    }

    let kind: Kind

    /// Serves the files of a folder and its subfolders. `index.html` is the page of its folder; folders are not listed.
    ///
    /// Files are read at each request, so changes take effect at once, and a link may change to a newer folder. Only regular
    /// files whose real path is in the folder are pages. Names that begin with a dot are not served, except `/.well-known`. The
    /// response has an `ETag` of the file's times and size, and `If-None-Match` is answered 304; `Range` is ignored.
    ///
    /// - Parameters:
    ///   - path: the folder, relative to the working directory of the process or absolute.
    ///   - prefix: the URL path of the folder; `/app` for `/app/index.html`. Default `/`.
    ///   - cacheControl: the caching rule for browsers. With `no-cache`, the default, they revalidate at each use, which costs
    ///     one short
    ///     response; `max-age=31536000, immutable` is for names that change with the content.
    ///   - showsDotFiles: whether files and folders whose names begin with a dot are pages, too. False by default.
    /// - Throws: `TransportError` of code `.addressInvalid` if `path` is no folder or `prefix` is no path.
    public static func folder(
        _ path: String, at prefix: String = "/", cacheControl: String = "no-cache", showsDotFiles: Bool = false
    ) throws(TransportError) -> PageSource {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw TransportError(.addressInvalid, "'\(path)' is not a folder")
        }
        let folder = PageFolder(
            path: path, prefix: try parsePath(prefix).parts, showsDotFiles: showsDotFiles, cacheControl: cacheControl)
        return PageSource(kind: .folder(folder))
    }

    /// Serves a page from memory.
    ///
    /// - Parameters:
    ///   - path: the URL path, as `/config.json`; percent-encoded.
    ///   - body: the bytes of the page. The `ETag` is a hash of them.
    ///   - type: the media type; by default that of the path's extension.
    ///   - headers: additional header fields.
    /// - Throws: `TransportError` of code `.addressInvalid` if `path` is no valid path.
    public static func page(_ path: String, _ body: [UInt8], type: String? = nil, headers: HTTPHeaders = [:])
        throws(TransportError) -> PageSource
    {
        let path = try parsePath(path)
        let page = MemoryPage(body, type: type ?? ContentType.of(path.parts.last ?? []), headers: headers)
        return PageSource(kind: .page(page, path: path))
    }

    /// The folders and pages of this source, in their order.
    var single: [PageSource] { if case .list(let sources) = kind { sources.flatMap(\.single) } else { [self] } }

    static func parsePath(_ path: String) throws(TransportError) -> PagePath {
        do throws(PagePath.InvalidPath) {
            return try PagePath(path, showsDotFiles: true)
        } catch {
            throw TransportError(
                .addressInvalid, "'\(path)' is not a page path; write /name or /folder/name, percent-encoded")
        }
    }
}
