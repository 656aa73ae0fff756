internal import Glibc
internal import WebSockets

/// A folder whose files are pages.
///
/// A file is checked by its descriptor before it is opened for reading, not by its path. `O_PATH` opens a FIFO without blocking
/// and a device without side effects, and `/proc` gives the real path with all links resolved.
struct PageFolder: Sendable {
    let path: String
    /// The URL path of the folder, split into parts.
    let prefix: [[UInt8]]
    let showsDotFiles: Bool
    let cacheControl: String

    /// `O_PATH` of Linux, which Glibc defines for `_GNU_SOURCE` only. Its value is the same on every architecture that Swift
    /// supports.
    private static let pathOnly: Int32 = 0o10_000_000

    private static let wellKnown = Array(".well-known".utf8)

    /// The result of a lookup.
    private enum Resolution {
        case file(Int32, stat, name: [UInt8])
        /// A folder that was requested without its trailing slash.
        case folderWithoutSlash
        case nothing
        /// No file descriptor is available.
        case full
    }

    /// Returns the parts of a path below the folder; nil if it cannot have a page there. Names that begin with a dot are no
    /// pages, except `/.well-known` (RFC 8615).
    ///
    /// The names in the request count, not the names of link targets: Kubernetes volumes store files in `..2026_05_01…` and
    /// link to them.
    func below(_ path: PagePath) -> ArraySlice<[UInt8]>? {
        guard let parts = path.suffix(after: prefix) else { return nil }
        let areShown = parts.enumerated().allSatisfy { index, part in
            part.first != UInt8(ascii: ".") || index == 0 && prefix.isEmpty && part == Self.wellKnown
        }
        return showsDotFiles || areShown ? parts : nil
    }

    /// Returns the response with the file of the path; nil if there is none. Blocks on file I/O.
    ///
    /// - Parameters:
    ///   - parts: the path below the folder.
    ///   - isFolder: whether it ends in a slash.
    func answer(_ parts: ArraySlice<[UInt8]>, isFolder: Bool, _ request: PlainRequest, _ open: OpenFiles)
        -> StreamedResponse?
    {
        switch find(parts, isFolder) {
        case .nothing: return nil
        case .full: return PageRouter.busy("too many open files")
        case .folderWithoutSlash:
            let target = request.head.path + "/" + (request.head.query.map { "?" + $0 } ?? "")
            return PageRouter.reply(
                301, "the folder is at \(target)", ["Location": target, "Cache-Control": "no-cache"])
        case .file(let handle, let status, let name):
            defer { close(handle) }
            return reply(handle, status, name, request, open)
        }
    }

    private func reply(
        _ handle: Int32, _ status: stat, _ name: [UInt8], _ request: PlainRequest, _ open: OpenFiles
    ) -> StreamedResponse? {
        let size = Int(status.st_size)
        // Include the change time (ctime), since copies and archives may set the modification time to any value.
        let tag =
            "W/\"\(Self.hex(status.st_mtim))-\(Self.hex(status.st_ctim))-\(String(UInt(bitPattern: size), radix: 16))\""
        var headers = PageRouter.headers(type: ContentType.of(name))
        headers.add("ETag", tag)
        headers.add("Last-Modified", HTTPDate.text(status.st_mtim.tv_sec))
        headers.add("Cache-Control", cacheControl)
        if EntityTag.isKnown(tag, to: request.head.headers) {
            return StreamedResponse(HTTPResponse(status: 304, headers: headers))
        }
        var reservation: OpenFiles.FileReservation?
        if size > StreamedResponse.pieceBytes, request.head.method != "HEAD" {
            reservation = open.reserveFile(for: request.remoteAddress.flatMap { AddressKey($0) })
            guard reservation != nil else {
                return PageRouter.busy("too many files are being sent (pages.openFiles, pages.openFilesPerHost)")
            }
        }
        let descriptor = Glibc.open("/proc/self/fd/\(handle)", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else {
            return errno == EMFILE || errno == ENFILE ? PageRouter.busy("no free file descriptors") : nil
        }
        let file = OpenFile(descriptor, reservation)
        let first = min(size, StreamedResponse.pieceBytes)
        let isHead = request.head.method == "HEAD"
        var response = HTTPResponse(status: 200, headers: headers)
        if first > 0, !isHead {
            guard let bytes = file.read(at: 0, first), bytes.count == first else { return nil }
            response.body = bytes
        }
        let sent = response.body.count
        guard size > sent else { return StreamedResponse(response) }
        return StreamedResponse(
            response,
            remainingBody: StreamedResponse.RemainingBody(
                count: size - sent, blocks: true, transfer: reservation?.transfer
            ) {
                offset, count in
                file.read(at: sent + offset, count)
            })
    }

    private static func hex(_ time: timespec) -> String {
        String(UInt64(bitPattern: Int64(time.tv_sec)) &* 1_000_000_000 &+ UInt64(time.tv_nsec), radix: 16)
    }

    // MARK: Finding

    private func find(_ parts: ArraySlice<[UInt8]>, _ isFolder: Bool) -> Resolution {
        // Open the root for each request, so that a link to the newest release may change its target.
        let root = Glibc.open(path, Self.pathOnly | O_DIRECTORY | O_CLOEXEC)
        guard root >= 0 else { return Self.failure }
        defer { close(root) }
        let relative = parts.isEmpty ? Array(".".utf8) : Array(parts.joined(separator: [UInt8(ascii: "/")]))
        guard relative.count < Int(PATH_MAX) else { return .nothing }
        let handle = Self.handle(relative, in: root)
        guard handle >= 0 else { return Self.failure }
        var status = stat()
        guard fstat(handle, &status) == 0, isInside(handle, in: root) else {
            close(handle)
            return .nothing
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG where !isFolder: return .file(handle, status, name: parts.last ?? [])
        case S_IFDIR:
            defer { close(handle) }
            return isFolder ? index(of: handle, in: root) : .folderWithoutSlash
        default:
            close(handle)
            return .nothing
        }
    }

    private func index(of folder: Int32, in root: Int32) -> Resolution {
        let name = Array("index.html".utf8)
        let handle = Self.handle(name, in: folder)
        guard handle >= 0 else { return Self.failure }
        var status = stat()
        guard fstat(handle, &status) == 0, status.st_mode & S_IFMT == S_IFREG, isInside(handle, in: root) else {
            close(handle)
            return .nothing
        }
        return .file(handle, status, name: name)
    }

    private static func handle(_ relative: [UInt8], in folder: Int32) -> Int32 {
        (relative + [0]).withUnsafeBytes {
            openat(folder, $0.bindMemory(to: CChar.self).baseAddress!, pathOnly | O_CLOEXEC)
        }
    }

    /// The result for `errno` of the last system call.
    private static var failure: Resolution { errno == EMFILE || errno == ENFILE ? .full : .nothing }

    /// Returns whether the real path of the file is in the folder and not hidden there. Names that begin with two dots belong
    /// to mounted volumes, as `..data` of Kubernetes.
    private func isInside(_ handle: Int32, in root: Int32) -> Bool {
        guard let path = Self.realPath(of: handle), let rootPath = Self.realPath(of: root) else { return false }
        if path == rootPath { return true }
        let prefix = rootPath.last == UInt8(ascii: "/") ? rootPath : rootPath + [UInt8(ascii: "/")]
        guard path.starts(with: prefix) else { return false }
        if showsDotFiles { return true }
        let parts = path.dropFirst(prefix.count).split(separator: UInt8(ascii: "/"))
        return parts.enumerated().allSatisfy { number, part in
            !part.starts(with: ".".utf8) || part.starts(with: "..".utf8)
                || number == 0 && part.elementsEqual(".well-known".utf8)
        }
    }

    /// Returns the real path of a descriptor; nil if `/proc` does not provide it.
    private static func realPath(of descriptor: Int32) -> [UInt8]? {
        let size = Int(PATH_MAX)
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, used in
            let count = buffer.withMemoryRebound(to: CChar.self) {
                readlink("/proc/self/fd/\(descriptor)", $0.baseAddress!, size)
            }
            used = max(0, count)
        }
        return bytes.first == UInt8(ascii: "/") && bytes.count < size ? bytes : nil
    }
}
