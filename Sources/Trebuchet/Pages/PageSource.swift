internal import Glibc
internal import Networking
internal import WebSockets

/// Where pages of a server come from: a folder, the memory, or what comes with the server.
public struct PageSource: Sendable {
    enum Kind: Sendable {
        case folder(PageFolder)
        case page(MemoryPage, place: PagePath)
        case list([PageSource])
    }

    let kind: Kind

    /// The files of a folder and of those in it. `index.html` stands for its folder; folders are not listed.
    ///
    /// Files are read when they are asked for, so what is put there is there at once, and a link may be set to a newer folder.
    /// Only regular files that lie in the folder, links resolved, are pages; a request for a name that begins with a dot finds none, but
    /// for `/.well-known`. The answer has an `ETag` of the file's times and size, and `If-None-Match` is answered 304; `Range` is not looked at.
    ///
    /// - Parameters:
    ///   - path: the folder, relative to the working directory of the process or absolute.
    ///   - prefix: where it begins in URLs; `/app` for `/app/index.html`. Default `/`.
    ///   - cacheControl: how long browsers may keep the files. `no-cache`, the default, has them ask each time whether there is a
    ///     newer one, which costs one short answer; `max-age=31536000, immutable` is for names that change with the content.
    ///   - showsDotFiles: whether files and folders whose names begin with a dot are pages, too. False by default.
    /// - Throws: `TransportError` of code `.addressInvalid` for what is no folder, and for a prefix that is no path.
    public static func folder(
        _ path: String, at prefix: String = "/", cacheControl: String = "no-cache", showsDotFiles: Bool = false
    ) throws(TransportError) -> PageSource {
        var facts = stat()
        guard stat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFDIR else {
            throw TransportError(.addressInvalid, "'\(path)' is no folder whose files could be pages")
        }
        let folder = PageFolder(
            path: path, prefix: try place(prefix).parts, showsDotFiles: showsDotFiles, cacheControl: cacheControl)
        return PageSource(kind: .folder(folder))
    }

    /// A page from memory.
    ///
    /// - Parameters:
    ///   - path: where it is, as `/config.json`; percent-encoded.
    ///   - body: its bytes. The `ETag` is a hash of them.
    ///   - type: its media type; that of the path's ending unless given.
    ///   - headers: fields beside those that every page has.
    /// - Throws: `TransportError` of code `.addressInvalid` for what is no path.
    public static func page(_ path: String, _ body: [UInt8], type: String? = nil, headers: HTTPHeaders = [:])
        throws(TransportError) -> PageSource
    {
        let place = try place(path)
        let page = MemoryPage(body, type: type ?? ContentType.of(place.parts.last ?? []), headers: headers)
        return PageSource(kind: .page(page, place: place))
    }

    /// Folders and pages, in their order.
    var single: [PageSource] { if case .list(let sources) = kind { sources.flatMap(\.single) } else { [self] } }

    static func place(_ path: String) throws(TransportError) -> PagePath {
        do throws(PagePath.Refusal) {
            return try PagePath(path, showsDotFiles: true)
        } catch {
            throw TransportError(
                .addressInvalid, "'\(path)' is no path of a page; write /name or /folder/name, percent-encoded")
        }
    }
}
