#include "base/quality.h"

#include <algorithm>

namespace baton {

int quality_thousandths(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return 0;
  if (text.size() > 1 && text[1] != '.') return 0;
  int weight = (text[0] - '0') * 1000;
  int place = 100;
  for (char digit : text.substr(std::min<size_t>(text.size(), 2))) {
    if (digit < '0' || digit > '9') return 0;
    weight += (digit - '0') * place;
    place /= 10;
  }
  return weight > 1000 ? 0 : weight;
}

}  // namespace baton
