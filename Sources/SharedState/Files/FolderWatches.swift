#if canImport(Glibc)
    internal import Glibc
    internal import Platform
    internal import Synchronization

    /// Hears of changes of files from the system.
    ///
    /// What is watched is the folder of a file: a file that is replaced is another one, under the same name. Where the folder is
    /// missing, the nearest above it that is there, until it comes. One thread for the process reads what the system tells; it
    /// begins with the first watch, and waits while there is nothing to tell.
    final class FolderWatches: Sendable {
        static let shared = FolderWatches()

        private struct State {
            /// The inotify instance; nil before the first watch, and where the system gives none.
            var descriptor: Int32?
            var isStarted = false
            var watches: [UInt64: FileWatch] = [:]
            /// Which watches a folder is watched for, by the number that the system has given it.
            var folders: [Int32: Set<UInt64>] = [:]
            var lastNumber: UInt64 = 0
        }

        private let state = Mutex(State())

        private init() {}

        /// Watches a file until the result is cancelled.
        func add(_ path: String, _ onChange: @escaping @Sendable () -> Void) -> FileWatch {
            let (watch, descriptor) = state.withLock { state -> (FileWatch, Int32?) in
                state.lastNumber += 1
                let watch = FileWatch(state.lastNumber, path, onChange, in: self)
                state.watches[watch.number] = watch
                var toStart: Int32?
                if !state.isStarted {
                    state.isStarted = true
                    let descriptor = inotify_init1(Int32(IN_CLOEXEC))
                    if descriptor >= 0 {
                        state.descriptor = descriptor
                        toStart = descriptor
                    }
                }
                arm(watch, &state)
                return (watch, toStart)
            }
            if let descriptor { startThread(named: "file-watches") { self.read(descriptor) } }
            return watch
        }

        func remove(_ watch: FileWatch) {
            let removed = state.withLock { state -> FileWatch? in
                disarm(watch, &state)
                return state.watches.removeValue(forKey: watch.number)
            }
            withExtendedLifetime(removed) {}
        }

        /// Watches the folder of the file, or the nearest above it.
        private func arm(_ watch: FileWatch, _ state: inout State) {
            guard let descriptor = state.descriptor else { return }
            let events =
                UInt32(IN_CLOSE_WRITE) | UInt32(IN_MOVED_TO) | UInt32(IN_MOVED_FROM) | UInt32(IN_DELETE)
                | UInt32(IN_CREATE) | UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)
            var (folder, missing, attempts) = (watch.path, "", 0)
            repeat {
                (missing, folder) = (folder, Self.folder(of: folder))
                let number = inotify_add_watch(descriptor, folder, events)
                guard number >= 0 else { continue }
                state.folders[number, default: []].insert(watch.number)
                watch.armed = (number, folder)
                // One that has come since it was looked for is in no event. Another may not be readable, however often it is tried.
                guard missing != watch.path, access(missing, F_OK) == 0, attempts < 4 else { return }
                disarm(watch, &state)
                (folder, attempts) = (watch.path, attempts + 1)
            } while folder != "/" && folder != "."
        }

        private func disarm(_ watch: FileWatch, _ state: inout State) {
            guard let (number, _) = watch.armed else { return }
            watch.armed = nil
            state.folders[number]?.remove(watch.number)
            guard state.folders[number]?.isEmpty == true, let descriptor = state.descriptor else { return }
            state.folders[number] = nil
            inotify_rm_watch(descriptor, number)
        }

        private static func folder(of path: String) -> String {
            guard let slash = path.lastIndex(of: "/") else { return "." }
            return slash == path.startIndex ? "/" : String(path[..<slash])
        }

        /// Reads what the system tells, for as long as the process runs.
        private func read(_ descriptor: Int32) {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 8)
            defer { buffer.deallocate() }
            while true {
                let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                handle(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        }

        private func handle(_ events: UnsafeRawBufferPointer) {
            var changed: [UInt64: FileWatch] = [:]
            let headSize = MemoryLayout<inotify_event>.size
            var offset = 0
            while offset + headSize <= events.count {
                let event = events.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                let name = events[(offset + headSize)..<min(events.count, offset + headSize + Int(event.len))]
                offset += headSize + Int(event.len)
                let file = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
                for watch in touched(by: event, named: file) { changed[watch.number] = watch }
            }
            // With no lock held.
            for watch in changed.values { watch.onChange() }
        }

        /// The watches that an event is for; those whose folder has come or gone are armed anew.
        private func touched(by event: inotify_event, named name: String) -> [FileWatch] {
            state.withLock { state in
                // Too many events at once: some were lost, and each file may be another.
                if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return Array(state.watches.values) }
                let isGone = event.mask & (UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF) | UInt32(IN_IGNORED)) != 0
                var touched: [FileWatch] = []
                for number in state.folders[event.wd] ?? [] {
                    guard let watch = state.watches[number], let (_, folder) = watch.armed else { continue }
                    let prefix = folder == "/" ? "/" : folder + "/"
                    let isFile = watch.path == prefix + name
                    // The next folder on the way to the file.
                    let isOnTheWay = watch.path.hasPrefix(prefix + name + "/")
                    if isGone || isOnTheWay {
                        disarm(watch, &state)
                        arm(watch, &state)
                    }
                    if isFile || isGone || isOnTheWay { touched.append(watch) }
                }
                return touched
            }
        }
    }

    /// A file that is watched.
    ///
    /// Unchecked: `armed` is used under the lock of ``FolderWatches`` alone, the rest never changes.
    final class FileWatch: @unchecked Sendable {
        let number: UInt64
        let path: String
        let onChange: @Sendable () -> Void
        /// The number of the folder that is watched for it, and its path.
        var armed: (number: Int32, folder: String)?
        private let watches: FolderWatches

        init(_ number: UInt64, _ path: String, _ onChange: @escaping @Sendable () -> Void, in watches: FolderWatches) {
            self.number = number
            self.path = path
            self.onChange = onChange
            self.watches = watches
        }

        func cancel() { watches.remove(self) }
    }
#endif
