#include "adapters/sqlite/sqlite_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace baton::adapters::sqlite {
namespace {

using ports::StoreFailure;

constexpr int kSchemaVersion = 1;
constexpr int kBusyTimeoutMs = 2000;

constexpr const char* kSchema =
    "CREATE TABLE curve_point("
    " model TEXT NOT NULL, version INTEGER NOT NULL, fingerprint TEXT NOT NULL,"
    " batch_size INTEGER NOT NULL, duration_ns INTEGER NOT NULL, samples INTEGER NOT NULL,"
    " PRIMARY KEY(model, version, fingerprint, batch_size)) WITHOUT ROWID;";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

class SqliteStore final : public ports::StateStore {
 public:
  explicit SqliteStore(Database database) : database_(std::move(database)) {}

  Result<void, StoreFailure> prepare() {
    sqlite3_busy_timeout(database_.get(), kBusyTimeoutMs);
    BATON_TRY(execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"));
    BATON_ASSIGN(const int64_t version, schema_version());
    if (version == kSchemaVersion) return {};
    if (version > kSchemaVersion) {
      return fail(StoreFailure{"the state file has schema version " + std::to_string(version) +
                               "; this baton knows " + std::to_string(kSchemaVersion)});
    }
    return execute("BEGIN IMMEDIATE; " + std::string(kSchema) +
                   " PRAGMA user_version=" + std::to_string(kSchemaVersion) + "; COMMIT;");
  }

  Result<std::optional<LatencyCurve>, StoreFailure> load_curve(
      const ports::CurveKey& key) override {
    const std::lock_guard lock(mutex_);
    BATON_ASSIGN(const Statement statement,
                 compile("SELECT batch_size, duration_ns, samples FROM curve_point"
                         " WHERE model=?1 AND version=?2 AND fingerprint=?3 ORDER BY batch_size"));
    bind(statement.get(), key);
    std::vector<CurvePoint> points;
    int step = 0;
    while ((step = sqlite3_step(statement.get())) == SQLITE_ROW) {
      if (points.size() > kMostCurvePoints) break;  // no curve, however many follow
      points.push_back(point_of(statement.get()));
    }
    if (step != SQLITE_DONE && step != SQLITE_ROW) return fail(failure());
    if (points.empty()) return std::optional<LatencyCurve>();
    if (!is_curve(points)) {
      return fail(StoreFailure{"the state file holds points that are no curve"});
    }
    return std::optional<LatencyCurve>(LatencyCurve(std::move(points)));
  }

  Result<void, StoreFailure> save_curve(const ports::CurveKey& key,
                                        const LatencyCurve& curve) override {
    const std::lock_guard lock(mutex_);
    BATON_TRY(execute("BEGIN IMMEDIATE;"));
    auto written = replace(key, curve);
    if (!written.has_value()) {
      static_cast<void>(execute("ROLLBACK;"));
      return written;
    }
    return execute("COMMIT;");
  }

 private:
  // A curve of an earlier file or of other options is of no use: the model's rows are replaced
  // whole.
  Result<void, StoreFailure> replace(const ports::CurveKey& key, const LatencyCurve& curve) {
    BATON_ASSIGN(
        const Statement remove,
        compile("DELETE FROM curve_point WHERE model=?1 AND version=?2 AND ?3 IS NOT NULL"));
    bind(remove.get(), key);
    if (sqlite3_step(remove.get()) != SQLITE_DONE) return fail(failure());
    BATON_ASSIGN(const Statement insert,
                 compile("INSERT INTO curve_point VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
    for (const CurvePoint& point : curve.points()) {
      sqlite3_reset(insert.get());
      bind(insert.get(), key);
      sqlite3_bind_int64(insert.get(), 4, point.batch_size);
      sqlite3_bind_int64(insert.get(), 5, point.duration.ns());
      sqlite3_bind_int64(insert.get(), 6, static_cast<int64_t>(point.samples));
      if (sqlite3_step(insert.get()) != SQLITE_DONE) return fail(failure());
    }
    return {};
  }

  Result<int64_t, StoreFailure> schema_version() {
    BATON_ASSIGN(const Statement statement, compile("PRAGMA user_version"));
    if (sqlite3_step(statement.get()) != SQLITE_ROW) return fail(failure());
    return sqlite3_column_int64(statement.get(), 0);
  }

  // Numbers that a point cannot hold become a size that is_curve refuses.
  static CurvePoint point_of(sqlite3_stmt* row) {
    const int64_t size = sqlite3_column_int64(row, 0);
    const bool fits = size > 0 && size <= std::numeric_limits<uint32_t>::max();
    return {fits ? static_cast<uint32_t>(size) : 0, Duration::ns(sqlite3_column_int64(row, 1)),
            static_cast<uint64_t>(std::max<int64_t>(sqlite3_column_int64(row, 2), 0))};
  }

  static void bind(sqlite3_stmt* statement, const ports::CurveKey& key) {
    // Null destructor: the texts outlive the step.
    sqlite3_bind_text(statement, 1, key.model.data(), static_cast<int>(key.model.size()), nullptr);
    sqlite3_bind_int64(statement, 2, key.version);
    sqlite3_bind_text(statement, 3, key.fingerprint.data(),
                      static_cast<int>(key.fingerprint.size()), nullptr);
  }

  Result<Statement, StoreFailure> compile(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql, -1, &statement, nullptr) != SQLITE_OK) {
      return fail(failure());
    }
    return Statement(statement);
  }

  Result<void, StoreFailure> execute(const std::string& sql) {
    if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      return fail(failure());
    }
    return {};
  }

  StoreFailure failure() {
    return {"the state file failed: " + std::string(sqlite3_errmsg(database_.get()))};
  }

  std::mutex mutex_;
  Database database_;
};

}  // namespace

Result<std::unique_ptr<ports::StateStore>, ports::StoreFailure> open_sqlite_store(
    const std::string& path) {
  sqlite3* raw = nullptr;
  const int opened =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw);
  if (opened != SQLITE_OK) {
    return fail(
        StoreFailure{"the state file " + path + " cannot be opened: " + sqlite3_errstr(opened)});
  }
  auto store = std::make_unique<SqliteStore>(std::move(database));
  BATON_TRY(store->prepare());
  return store;
}

}  // namespace baton::adapters::sqlite
